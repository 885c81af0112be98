package interop;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What BookKeeper's own client can do with our bookies, feature by feature.
 *
 * <p>One line a feature on standard output: {@code ok NAME} or {@code FAIL NAME reason}. With
 * {@code --list} only the names. It finds the bookies by their metadata, {@code --metadata-url},
 * and what they show and ask for with TLS in {@code --certificates}.
 */
public final class Main {
    private static final long SECONDS_PER_FEATURE = 120;

    private Main() {
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> options = options(args);
        Map<String, Feature> features = new LinkedHashMap<>();
        Both.addTo(features);
        Only.addTo(features);
        String only = options.getOrDefault("only", "");
        List<String> names = features.keySet().stream().filter(n -> n.contains(only)).toList();
        if (options.containsKey("list")) {
            names.forEach(System.out::println);
            return;
        }
        var clients = new Clients(options.get("metadata-url"), options.get("certificates"));
        for (String name : names) {
            System.out.println(show(clients, name, features.get(name)));
        }
        System.out.flush();
        Runtime.getRuntime().halt(0); // whatever a failed feature has left running
    }

    private static Map<String, String> options(String[] args) {
        Map<String, String> options = new LinkedHashMap<>();
        for (String arg : args) {
            String[] parts = arg.replaceFirst("^--", "").split("=", 2);
            options.put(parts[0], parts.length > 1 ? parts[1] : "");
        }
        return options;
    }

    private static String show(Clients clients, String name, Feature feature) {
        var result = new CompletableFuture<Void>();
        var thread = new Thread(() -> {
            try {
                feature.show(clients);
                result.complete(null);
            } catch (Throwable e) {
                result.completeExceptionally(e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        try {
            result.get(SECONDS_PER_FEATURE, TimeUnit.SECONDS);
            return "ok " + name;
        } catch (ExecutionException e) {
            e.getCause().printStackTrace();
            return "FAIL " + name + " " + oneLine(e.getCause());
        } catch (TimeoutException e) {
            StackTraceElement[] where = thread.getStackTrace();
            Arrays.stream(where).forEach(frame -> System.err.println("\tat " + frame));
            thread.interrupt();
            return "FAIL " + name + " no end within " + SECONDS_PER_FEATURE + " s, at " + ours(where);
        } catch (InterruptedException e) {
            return "FAIL " + name + " interrupted";
        }
    }

    private static String oneLine(Throwable e) {
        return (e + " at " + ours(e.getStackTrace())).replaceAll("\\s+", " ");
    }

    /** The last line of ours, other than a check's. */
    private static String ours(StackTraceElement[] trace) {
        return Arrays.stream(trace)
                .filter(f -> f.getClassName().startsWith("interop.")
                        && !f.getClassName().equals(Check.class.getName())
                        && !f.getClassName().equals(Clients.class.getName()))
                .findFirst().map(f -> f.getFileName() + ":" + f.getLineNumber()).orElse("?");
    }
}
