package interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** What a feature works with: clients that are closed after it, and topics that nobody else uses. */
final class World implements AutoCloseable {
    final Server server;
    final PulsarClient client;
    final PulsarAdmin admin;
    private final String name;
    private final List<PulsarClient> clients = new ArrayList<>();

    World(Server server, String name) throws Exception {
        this.server = server;
        this.name = server.client + "-" + name.replace('_', '-');
        this.client = anotherClient();
        this.admin = PulsarAdmin.builder().serviceHttpUrl(server.webUrl).build();
    }

    @Override
    public void close() throws Exception {
        var closing = clients.stream().map(PulsarClient::closeAsync).toArray(CompletableFuture[]::new);
        CompletableFuture.allOf(closing).get(20, TimeUnit.SECONDS);
        admin.close();
    }

    PulsarClient anotherClient() throws Exception {
        return anotherClient(server.url);
    }

    PulsarClient anotherClient(String url) throws Exception {
        var another = PulsarClient.builder().serviceUrl(url)
                .operationTimeout(30, TimeUnit.SECONDS).build();
        clients.add(another);
        return another;
    }

    /** By TLS, and the host must be that of the certificate; trust null: what everyone trusts. */
    PulsarClient secureClient(String url, String trust) throws Exception {
        var another = PulsarClient.builder().serviceUrl(url).tlsTrustCertsFilePath(trust)
                .enableTlsHostnameVerification(true)
                .operationTimeout(trust == null ? 3 : 30, TimeUnit.SECONDS)
                .lookupTimeout(trust == null ? 3 : 30, TimeUnit.SECONDS).build();
        clients.add(another);
        return another;
    }

    /** A short name in public/default. */
    String topic(String suffix) {
        return name + "-" + suffix;
    }

    String fullTopic(String suffix) {
        return "persistent://public/default/" + topic(suffix);
    }

    /** A namespace of the feature's own. */
    String namespace(String suffix) throws Exception {
        String namespace = "public/" + topic(suffix);
        admin.namespaces().createNamespace(namespace);
        return namespace;
    }

    /** A producer that sends each message in an entry of its own, and at once. */
    ProducerBuilder<byte[]> producer(String topic) {
        return client.newProducer().topic(topic).enableBatching(false).blockIfQueueFull(true);
    }

    ProducerBuilder<byte[]> batching(String topic) {
        return client.newProducer().topic(topic).enableBatching(true).blockIfQueueFull(true)
                .batchingMaxPublishDelay(5, TimeUnit.MILLISECONDS);
    }

    /** On the subscription "sub", from the beginning on. */
    ConsumerBuilder<byte[]> consumer(String... topics) {
        return consumer(client, topics);
    }

    ConsumerBuilder<byte[]> consumer(PulsarClient by, String... topics) {
        var builder = by.newConsumer().subscriptionName("sub")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest);
        return topics.length == 0 ? builder : builder.topic(topics);
    }

    /** "message 0", "message 1", ... */
    static List<byte[]> numbered(int from, int to) {
        return IntStream.range(from, to).mapToObj(i -> ("message " + i).getBytes()).toList();
    }

    static int number(Message<byte[]> message) {
        return Integer.parseInt(text(message).replaceAll("\\D", ""));
    }

    static String text(Message<byte[]> message) {
        return new String(message.getData(), StandardCharsets.UTF_8);
    }

    /** Of any bytes and many lengths, none included. */
    static List<byte[]> mixed(int n) {
        var random = new Random(n);
        return IntStream.range(0, n).mapToObj(i -> bytes(random, i * 37 % 4099)).toList();
    }

    static byte[] bytes(Random random, int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    /** One after the other; gives their ids. */
    static List<MessageId> send(Producer<byte[]> producer, List<byte[]> payloads) throws Exception {
        List<MessageId> ids = new ArrayList<>();
        for (byte[] payload : payloads) {
            ids.add(producer.send(payload));
        }
        return ids;
    }

    /** Without waiting for each; gives their ids. */
    static List<MessageId> sendAll(Producer<byte[]> producer, List<byte[]> payloads) throws Exception {
        var sent = payloads.stream().map(producer::sendAsync).toList();
        producer.flush();
        return sent.stream().map(CompletableFuture::join).collect(Collectors.toList());
    }

    /** All of them in one entry. */
    void sendBatch(String topic, List<byte[]> payloads) throws Exception {
        try (var producer = client.newProducer().topic(topic).enableBatching(true)
                .batchingMaxMessages(payloads.size())
                .batchingMaxPublishDelay(10, TimeUnit.SECONDS).create()) {
            sendAll(producer, payloads);
        }
    }

    static Message<byte[]> receive(Consumer<byte[]> consumer) throws Exception {
        Message<byte[]> message = consumer.receive(20, TimeUnit.SECONDS);
        Check.that(message != null, "no message within 20 s");
        return message;
    }

    static List<Message<byte[]>> receive(Consumer<byte[]> consumer, int n) throws Exception {
        List<Message<byte[]>> got = new ArrayList<>();
        while (got.size() < n) {
            Message<byte[]> message = consumer.receive(20, TimeUnit.SECONDS);
            Check.that(message != null, "only " + got.size() + " of " + n + " messages");
            got.add(message);
        }
        return got;
    }

    static List<Message<byte[]>> receiveAndAck(Consumer<byte[]> consumer, int n) throws Exception {
        List<Message<byte[]>> got = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            Message<byte[]> message = consumer.receive(20, TimeUnit.SECONDS);
            Check.that(message != null, "only " + i + " of " + n + " messages");
            consumer.acknowledge(message);
            got.add(message);
        }
        return got;
    }

    /** n messages from whichever has some: a list for each consumer. */
    static List<List<Message<byte[]>>> drain(List<Consumer<byte[]>> consumers, int n, boolean ack)
            throws Exception {
        List<List<Message<byte[]>>> got = new ArrayList<>();
        consumers.forEach(c -> got.add(new ArrayList<>()));
        long end = System.nanoTime() + 40_000_000_000L;
        int total = 0;
        while (total < n) {
            Check.that(System.nanoTime() < end, "only " + total + " of " + n + " messages");
            for (int i = 0; i < consumers.size() && total < n; i++) {
                var message = consumers.get(i).receive(10, TimeUnit.MILLISECONDS);
                if (message == null) {
                    continue;
                }
                total++;
                got.get(i).add(message);
                if (ack) {
                    consumers.get(i).acknowledge(message);
                }
            }
        }
        return got;
    }

    static List<Message<byte[]>> flat(List<List<Message<byte[]>>> lists) {
        return lists.stream().flatMap(List::stream).toList();
    }

    @SafeVarargs
    static void nothingMore(Consumer<byte[]>... consumers) throws Exception {
        for (var consumer : consumers) {
            Message<byte[]> message = consumer.receive(400, TimeUnit.MILLISECONDS);
            Check.that(message == null, "one more: " + (message == null ? "" : text(message)));
        }
    }

    static List<Message<byte[]>> read(Reader<byte[]> reader, int n) throws Exception {
        List<Message<byte[]>> got = new ArrayList<>();
        while (got.size() < n) {
            Message<byte[]> message = reader.readNext(20, TimeUnit.SECONDS);
            Check.that(message != null, "only " + got.size() + " of " + n + " messages");
            got.add(message);
        }
        return got;
    }

    static void nothingMore(Reader<byte[]> reader) throws Exception {
        Message<byte[]> message = reader.readNext(400, TimeUnit.MILLISECONDS);
        Check.that(message == null, "one more: " + (message == null ? "" : text(message)));
    }
}
