package interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Map;

/**
 * Where the server is, and how to have it restarted.
 *
 * <p>Restarting is the driver's: a line {@code ? restart} on standard output asks for it, a line on
 * standard input says that it is done.
 */
final class Server {
    final String url;
    final String webUrl;
    final String tlsUrl;
    final String tlsWebUrl;
    final String tlsTrust;
    final String client;
    final int unackedLimit;
    private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));

    Server(Map<String, String> options) {
        url = options.get("url");
        webUrl = options.get("web-url");
        tlsUrl = options.get("tls-url");
        tlsWebUrl = options.get("tls-web-url");
        tlsTrust = options.get("tls-trust");
        client = options.getOrDefault("suite", "java");
        unackedLimit = Integer.parseInt(options.getOrDefault("unacked-limit", "0"));
    }

    /** kill -9, and it is ready again when this returns. */
    synchronized void restart() throws IOException {
        System.out.println("? restart");
        System.out.flush();
        Check.same("done", answers.readLine(), "the driver's answer");
    }
}
