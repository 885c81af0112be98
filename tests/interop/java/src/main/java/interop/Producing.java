package interop;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.CompressionType;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerAccessMode;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.impl.ProducerBuilderImpl;

/** Messages in: one by one, in batches, compressed, in chunks; names and access modes of producers. */
final class Producing {
    private Producing() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("produce_and_consume", Producing::produceAndConsume);
        features.put("async_without_batching", Producing::asyncWithoutBatching);
        features.put("async_with_batching", Producing::asyncWithBatching);
        features.put("compression_lz4", w -> compressed(w, CompressionType.LZ4));
        features.put("compression_zlib", w -> compressed(w, CompressionType.ZLIB));
        features.put("compression_zstd", w -> compressed(w, CompressionType.ZSTD));
        features.put("compression_snappy", w -> compressed(w, CompressionType.SNAPPY));
        features.put("chunked_large_messages", Producing::chunkedLargeMessages);
        features.put("keys_and_properties", Producing::keysAndProperties);
        features.put("too_large_is_refused", Producing::tooLargeIsRefused);
        features.put("producer_name_conflict", Producing::producerNameConflict);
        features.put("generated_names", Producing::generatedNames);
        features.put("initial_subscription", Producing::initialSubscription);
        features.put("access_shared", Producing::accessShared);
        features.put("access_exclusive", Producing::accessExclusive);
        features.put("access_wait_for_exclusive", Producing::accessWaitForExclusive);
        features.put("access_exclusive_with_fencing", Producing::accessExclusiveWithFencing);
    }

    private static void produceAndConsume(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscribe();
        var producer = w.producer(topic).create();
        var wanted = World.mixed(500);
        var ids = World.send(producer, wanted);
        var got = World.receiveAndAck(consumer, 500);
        Check.payloads(wanted, got);
        sameIds(ids, got);
        Check.same(499L, producer.getLastSequenceId(), "last sequence id");
        World.nothingMore(consumer);
    }

    private static void sameIds(List<MessageId> ids, List<Message<byte[]>> got) {
        for (int i = 0; i < ids.size(); i++) {
            Check.same(0, ids.get(i).compareTo(got.get(i).getMessageId()), "id of message " + i);
            Check.that(i == 0 || ids.get(i - 1).compareTo(ids.get(i)) < 0, "ids grow at " + i);
        }
    }

    private static void asyncWithoutBatching(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscribe();
        var wanted = World.mixed(3000);
        var ids = World.sendAll(w.producer(topic).create(), wanted);
        var got = World.receiveAndAck(consumer, 3000);
        Check.payloads(wanted, got);
        sameIds(ids, got);
    }

    private static void asyncWithBatching(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscribe();
        var wanted = World.numbered(0, 20000);
        var ids = World.sendAll(w.batching(topic).create(), wanted);
        var got = World.receiveAndAck(consumer, 20000);
        Check.payloads(wanted, got);
        sameIds(ids, got);
        Check.that(ids.stream().anyMatch(id -> ((MessageIdAdv) id).getBatchIndex() > 0),
                "there were batches");
        World.nothingMore(consumer);
    }

    private static void compressed(World w, CompressionType type) throws Exception {
        for (boolean batching : new boolean[] {false, true}) {
            String topic = w.topic(batching ? "batches" : "singles");
            List<byte[]> wanted = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                wanted.add((i + " and the same again ").repeat(i * 3).getBytes());
            }
            var builder = batching ? w.batching(topic) : w.producer(topic);
            World.sendAll(builder.compressionType(type).create(), wanted);
            Check.payloads(wanted, World.receiveAndAck(w.consumer(topic).subscribe(), 200));
        }
    }

    private static void chunkedLargeMessages(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscribe();
        var producer = w.producer(topic).enableChunking(true).create();
        var random = new Random(1);
        List<byte[]> wanted = List.of(World.bytes(random, 12 << 20), "small".getBytes(),
                World.bytes(random, (20 << 20) + 1));
        World.send(producer, wanted);
        Check.payloads(wanted, World.receiveAndAck(consumer, 3));
        World.nothingMore(consumer);
    }

    private static void keysAndProperties(World w) throws Exception {
        for (boolean batching : new boolean[] {false, true}) {
            String topic = w.topic(batching ? "batches" : "singles");
            var producer = (batching ? w.batching(topic) : w.producer(topic)).create();
            List<CompletableFuture<MessageId>> sent = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                sent.add(producer.newMessage().key("key-" + i).orderingKey(("order-" + i).getBytes())
                        .property("n", "" + i).property("of", "50").property("snow", "☃")
                        .eventTime(1000 + i).value(("v" + i).getBytes()).sendAsync());
            }
            sent.add(producer.newMessage().value("bare".getBytes()).sendAsync());
            producer.flush();
            sent.forEach(CompletableFuture::join);
            var got = World.receiveAndAck(w.consumer(topic).subscribe(), 51);
            for (int i = 0; i < 50; i++) {
                keptAll(got.get(i), i, producer.getProducerName());
            }
            var bare = got.get(50);
            Check.that(!bare.hasKey() && !bare.hasOrderingKey() && bare.getProperties().isEmpty()
                    && bare.getEventTime() == 0, "nothing is added to a bare message");
        }
    }

    private static void keptAll(Message<byte[]> m, int i, String producerName) {
        Check.same("v" + i, World.text(m), "value");
        Check.same("key-" + i, m.getKey(), "key");
        Check.same("order-" + i, new String(m.getOrderingKey()), "ordering key");
        Check.same(Map.of("n", "" + i, "of", "50", "snow", "☃"), m.getProperties(), "properties");
        Check.same(1000L + i, m.getEventTime(), "event time");
        Check.same((long) i, m.getSequenceId(), "sequence id");
        Check.same(producerName, m.getProducerName(), "producer");
        Check.that(Math.abs(m.getPublishTime() - System.currentTimeMillis()) < 60000, "publish time");
    }

    private static void tooLargeIsRefused(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        var consumer = w.consumer(topic).subscribe();
        Check.refused(PulsarClientException.InvalidMessageException.class,
                () -> producer.send(new byte[(5 << 20) + 1]));
        var largest = World.bytes(new Random(2), (5 << 20) - 1024);
        producer.send(largest);
        Check.payloads(List.of(largest), World.receiveAndAck(consumer, 1));
    }

    private static void producerNameConflict(World w) throws Exception {
        String topic = w.topic("t");
        var first = w.producer(topic).producerName("me").create();
        var other = w.anotherClient();
        Check.refused(PulsarClientException.ProducerBusyException.class,
                () -> other.newProducer().topic(topic).producerName("me").create());
        first.send("still there".getBytes());
        first.close();
        other.newProducer().topic(topic).producerName("me").create().send("mine now".getBytes());
    }

    private static void generatedNames(World w) throws Exception {
        var names = new HashSet<String>();
        for (int i = 0; i < 10; i++) {
            String name = w.producer(w.topic("t")).create().getProducerName();
            Check.that(name != null && !name.isEmpty() && names.add(name), "a new name: " + name);
        }
    }

    private static void initialSubscription(World w) throws Exception {
        String topic = w.topic("t");
        var builder = (ProducerBuilderImpl<byte[]>) w.producer(topic);
        var wanted = World.numbered(0, 10);
        World.send(builder.initialSubscriptionName("early").create(), wanted);
        var consumer = w.client.newConsumer().topic(topic).subscriptionName("early").subscribe();
        Check.payloads(wanted, World.receiveAndAck(consumer, 10));
    }

    private static Producer<byte[]> by(PulsarClient client, String topic, ProducerAccessMode mode)
            throws Exception {
        return client.newProducer().topic(topic).accessMode(mode).enableBatching(false).create();
    }

    private static void accessShared(World w) throws Exception {
        String topic = w.topic("t");
        var one = by(w.client, topic, ProducerAccessMode.Shared);
        var two = by(w.anotherClient(), topic, ProducerAccessMode.Shared);
        one.send("message 1".getBytes());
        two.send("message 2".getBytes());
        Check.refused(PulsarClientException.ProducerFencedException.class,
                () -> by(w.client, topic, ProducerAccessMode.Exclusive));
        one.send("message 3".getBytes());
        Check.payloads(World.numbered(1, 4), World.receiveAndAck(w.consumer(topic).subscribe(), 3));
    }

    private static void accessExclusive(World w) throws Exception {
        String topic = w.topic("t");
        var second = w.anotherClient();
        var first = by(w.client, topic, ProducerAccessMode.Exclusive);
        Check.refused(PulsarClientException.ProducerFencedException.class,
                () -> by(second, topic, ProducerAccessMode.Exclusive));
        Check.refused(PulsarClientException.ProducerBusyException.class,
                () -> by(second, topic, ProducerAccessMode.Shared));
        first.send("message 0".getBytes());
        first.close();
        by(second, topic, ProducerAccessMode.Exclusive).send("message 1".getBytes());
        Check.payloads(World.numbered(0, 2), World.receiveAndAck(w.consumer(topic).subscribe(), 2));
    }

    private static void accessWaitForExclusive(World w) throws Exception {
        String topic = w.topic("t");
        var first = by(w.client, topic, ProducerAccessMode.Exclusive);
        var waiting = w.anotherClient().newProducer().topic(topic).enableBatching(false)
                .accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
        first.send("message 0".getBytes());
        Thread.sleep(500);
        Check.that(!waiting.isDone(), "one at a time");
        first.send("message 1".getBytes());
        first.close();
        waiting.get(20, TimeUnit.SECONDS).send("message 2".getBytes());
        Check.payloads(World.numbered(0, 3), World.receiveAndAck(w.consumer(topic).subscribe(), 3));
    }

    private static void accessExclusiveWithFencing(World w) throws Exception {
        String topic = w.topic("t");
        var first = by(w.client, topic, ProducerAccessMode.Exclusive);
        first.send("message 0".getBytes());
        var waiting = w.anotherClient().newProducer().topic(topic)
                .accessMode(ProducerAccessMode.WaitForExclusive).createAsync();
        Check.soon("one waits", () -> w.admin.topics().getStats(topic).getWaitingPublishers() == 1);
        var last = by(w.anotherClient(), topic, ProducerAccessMode.ExclusiveWithFencing);
        Check.refused(PulsarClientException.class, () -> first.send("fenced out".getBytes()));
        Check.refused(PulsarClientException.ProducerFencedException.class,
                () -> waiting.get(20, TimeUnit.SECONDS));
        last.send("message 1".getBytes());
        var consumer = w.consumer(topic).subscribe();
        Check.payloads(World.numbered(0, 2), World.receiveAndAck(consumer, 2));
        World.nothingMore(consumer);
    }
}
