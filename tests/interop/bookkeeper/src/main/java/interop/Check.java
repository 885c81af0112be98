package interop;

import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.bookkeeper.client.api.BKException;

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

    /** It fails with that code. */
    static void refused(int code, Action action) throws Exception {
        try {
            action.run();
        } catch (Exception e) {
            Throwable cause = e;
            while ((cause instanceof ExecutionException || cause instanceof CompletionException)
                    && cause.getCause() != null) {
                cause = cause.getCause();
            }
            if (cause instanceof BKException bk) {
                same(BKException.codeLogger(code), BKException.codeLogger(bk.getCode()), "refused with");
                return;
            }
            throw e;
        }
        throw new AssertionError("it was not refused");
    }

    /** Asks until it is so. */
    static void soon(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (!condition.call()) {
            that(System.nanoTime() < end, "not within 30 s: " + what);
            Thread.sleep(20);
        }
    }
}
