package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionType;

/** What was acknowledged does not come again, and nothing else is missing. */
final class Acknowledging {
    private Acknowledging() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("ack_individual", Acknowledging::individual);
        features.put("ack_cumulative", Acknowledging::cumulative);
        features.put("ack_batch_index", Acknowledging::batchIndex);
        features.put("ack_batch_index_cumulative", Acknowledging::batchIndexCumulative);
        features.put("ack_receipts", Acknowledging::receipts);
        features.put("ack_list", Acknowledging::list);
        features.put("ack_survives_restart", Acknowledging::survivesRestart);
        features.put("unsubscribe", Acknowledging::unsubscribe);
        features.put("unsubscribe_force", Acknowledging::unsubscribeForce);
    }

    private static void individual(World w) throws Exception {
        String topic = w.topic("t");
        World.sendAll(w.producer(topic).create(), World.numbered(0, 100));
        var consumer = w.consumer(topic).subscribe();
        List<byte[]> left = new ArrayList<>();
        for (var message : World.receive(consumer, 100)) {
            if (World.number(message) % 3 == 1) {
                consumer.acknowledge(message);
            } else {
                left.add(message.getData());
            }
        }
        consumer.close();
        consumer = w.consumer(topic).subscribe();
        Check.payloads(left, World.receiveAndAck(consumer, left.size()));
        World.nothingMore(consumer);
    }

    private static void cumulative(World w) throws Exception {
        String topic = w.topic("t");
        World.sendAll(w.producer(topic).create(), World.numbered(0, 100));
        var consumer = w.consumer(topic).subscribe();
        consumer.acknowledgeCumulative(World.receive(consumer, 100).get(59));
        consumer.close();
        consumer = w.consumer(topic).subscribe();
        Check.payloads(World.numbered(60, 100), World.receiveAndAck(consumer, 40));
        World.nothingMore(consumer);
    }

    private static void batchIndex(World w) throws Exception {
        for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Shared)) {
            String topic = w.topic(type.toString());
            var builder = w.consumer(topic).subscriptionType(type)
                    .enableBatchIndexAcknowledgment(true);
            var consumer = builder.clone().subscribe();
            w.sendBatch(topic, World.numbered(0, 100));
            List<byte[]> left = new ArrayList<>();
            for (var message : World.receive(consumer, 100)) {
                if (World.number(message) % 3 == 0) {
                    consumer.acknowledge(message);
                } else {
                    left.add(message.getData());
                }
            }
            consumer.close();
            consumer = builder.subscribe();
            Check.payloads(left, World.receiveAndAck(consumer, left.size()));
            World.nothingMore(consumer);
        }
    }

    private static void batchIndexCumulative(World w) throws Exception {
        String topic = w.topic("t");
        var builder = w.consumer(topic).enableBatchIndexAcknowledgment(true);
        var consumer = builder.clone().subscribe();
        w.sendBatch(topic, World.numbered(0, 10));
        w.sendBatch(topic, World.numbered(10, 20));
        consumer.acknowledgeCumulative(World.receive(consumer, 20).get(13));
        consumer.close();
        consumer = builder.subscribe();
        Check.payloads(World.numbered(14, 20), World.receiveAndAck(consumer, 6));
        World.nothingMore(consumer);
    }

    /** What has a receipt is acknowledged for good, also when the connection is cut at once. */
    private static void receipts(World w) throws Exception {
        String topic = w.topic("t");
        var dies = w.anotherClient();
        var consumer = w.consumer(dies, topic).isAckReceiptEnabled(true).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 100));
        var got = World.receive(consumer, 100);
        for (int i = 0; i < 90; i++) {
            consumer.acknowledgeAsync(got.get(i)).get(20, TimeUnit.SECONDS);
        }
        dies.shutdown();
        var next = w.consumer(topic).isAckReceiptEnabled(true).subscribe();
        got = World.receive(next, 10);
        Check.payloads(World.numbered(90, 100), got);
        next.acknowledgeCumulativeAsync(got.get(9)).get(20, TimeUnit.SECONDS);
        World.nothingMore(next);
    }

    private static void list(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).isAckReceiptEnabled(true).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 100));
        List<MessageId> ids = new ArrayList<>();
        for (var message : World.receive(consumer, 100)) {
            if (World.number(message) % 2 == 0) {
                ids.add(message.getMessageId());
            }
        }
        consumer.acknowledge(ids);
        consumer.close();
        consumer = w.consumer(topic).subscribe();
        for (var message : World.receiveAndAck(consumer, 50)) {
            Check.same(1, World.number(message) % 2, "the rest of " + World.text(message));
        }
        World.nothingMore(consumer);
    }

    private static void survivesRestart(World w) throws Exception {
        String topic = w.topic("t");
        var builder = w.consumer(topic).enableBatchIndexAcknowledgment(true)
                .isAckReceiptEnabled(true);
        var consumer = builder.clone().subscribe();
        w.sendBatch(topic, World.numbered(0, 100));
        World.sendAll(w.producer(topic).create(), World.numbered(100, 200));
        List<byte[]> left = new ArrayList<>();
        for (var message : World.receive(consumer, 200)) {
            if (World.number(message) % 3 == 0) {
                consumer.acknowledge(message);
            } else {
                left.add(message.getData());
            }
        }
        consumer.close();
        w.server.restart();
        consumer = builder.subscribe();
        Check.payloads(left, World.receiveAndAck(consumer, left.size()));
        World.nothingMore(consumer);
    }

    private static void unsubscribe(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        producer.send("message 0".getBytes());
        var consumer = w.consumer(topic).subscribe();
        World.receive(consumer, 1);
        consumer.unsubscribe();
        Check.same(List.of(), w.admin.topics().getSubscriptions(topic), "subscriptions");
        consumer = w.consumer(topic).subscribe(); // a new one, from the start
        Check.payloads(World.numbered(0, 1), World.receiveAndAck(consumer, 1));
    }

    private static void unsubscribeForce(World w) throws Exception {
        String topic = w.topic("t");
        var shared = w.consumer(topic).subscriptionType(SubscriptionType.Shared);
        var one = shared.clone().subscribe();
        var other = w.consumer(w.anotherClient(), topic).subscriptionType(SubscriptionType.Shared)
                .subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 10));
        World.drain(List.of(one, other), 10, true);
        Thread.sleep(500); // the client groups acknowledgements, and may bring them late
        Check.refused(PulsarClientException.class, () -> one.unsubscribe());
        one.unsubscribe(true);
        // The other comes back by itself, to a new subscription: everything is there again.
        Check.payloads(World.numbered(0, 10), World.receiveAndAck(other, 10));
    }
}
