package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.pulsar.client.api.Message;

/** What must hold; whatever does not is an AssertionError that tells both sides. */
final class Check {
    private Check() {
    }

    /** Something that may throw. */
    interface Action {
        void run() throws Exception;
    }

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void same(Object wanted, Object got, String what) {
        if (!Objects.equals(wanted, got)) {
            throw new AssertionError(what + ": " + got + ", not " + wanted);
        }
    }

    /** The same bytes in the same order. */
    static void payloads(List<byte[]> wanted, List<Message<byte[]>> got) {
        same(wanted.size(), got.size(), "messages");
        for (int i = 0; i < wanted.size(); i++) {
            if (!Arrays.equals(wanted.get(i), got.get(i).getData())) {
                throw new AssertionError("message " + i + " is '" + shown(got.get(i).getData())
                        + "', not '" + shown(wanted.get(i)) + "'");
            }
        }
    }

    /** The same bytes as often, in any order. */
    static void payloadsInAnyOrder(List<byte[]> wanted, List<Message<byte[]>> got) {
        List<byte[]> sorted = new ArrayList<>(wanted);
        sorted.sort(Arrays::compare);
        List<Message<byte[]>> gotSorted = new ArrayList<>(got);
        gotSorted.sort((a, b) -> Arrays.compare(a.getData(), b.getData()));
        payloads(sorted, gotSorted);
    }

    /** It throws that, and soon: an answer by the broker, not a timeout. */
    static <E extends Exception> E refused(Class<E> error, Action action) {
        long began = System.nanoTime();
        try {
            action.run();
        } catch (Exception e) {
            Throwable cause = e;
            while ((cause instanceof ExecutionException || cause instanceof CompletionException)
                    && cause.getCause() != null) {
                cause = cause.getCause();
            }
            if (!error.isInstance(cause)) {
                throw new AssertionError(cause + " instead of " + error.getSimpleName(), cause);
            }
            that(System.nanoTime() - began < 20_000_000_000L, "refused by a timeout: " + cause);
            return error.cast(cause);
        }
        throw new AssertionError("no " + error.getSimpleName());
    }

    /** Asks until it is so. */
    static void soon(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (!condition.call()) {
            that(System.nanoTime() < end, "not within 30 s: " + what);
            Thread.sleep(20);
        }
    }

    private static String shown(byte[] bytes) {
        String text = new String(bytes, 0, Math.min(bytes.length, 40));
        return bytes.length > 40 ? text + "... of " + bytes.length : text;
    }
}
