package interop;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** What was not acknowledged comes again: how, how often, and where to in the end. */
final class Redelivering {
    private Redelivering() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("negative_ack", Redelivering::negativeAck);
        features.put("negative_ack_in_batch", Redelivering::negativeAckInBatch);
        features.put("redelivery_count", Redelivering::redeliveryCount);
        features.put("ack_timeout", Redelivering::ackTimeout);
        features.put("redeliver_unacknowledged", Redelivering::redeliverUnacknowledged);
        features.put("dead_letter_policy", Redelivering::deadLetterPolicy);
        features.put("dead_letter_initial_subscription", Redelivering::deadLetterSubscription);
        features.put("retry_topic", Redelivering::retryTopic);
        features.put("unacked_limit", Redelivering::unackedLimit);
    }

    private static ConsumerBuilder<byte[]> shared(World w, String topic) {
        return w.consumer(topic).subscriptionType(SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(100, TimeUnit.MILLISECONDS);
    }

    private static void negativeAck(World w) throws Exception {
        for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Shared)) {
            String topic = w.topic(type.toString());
            var consumer = shared(w, topic).subscriptionType(type).subscribe();
            World.sendAll(w.producer(topic).create(), World.numbered(0, 20));
            for (var message : World.receive(consumer, 20)) {
                if (World.number(message) < 10) {
                    consumer.acknowledge(message);
                } else {
                    consumer.negativeAcknowledge(message);
                }
            }
            var got = World.receiveAndAck(consumer, 10);
            Check.payloadsInAnyOrder(World.numbered(10, 20), got);
            World.nothingMore(consumer);
        }
    }

    private static void negativeAckInBatch(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = shared(w, topic).enableBatchIndexAcknowledgment(true).subscribe();
        w.sendBatch(topic, World.numbered(0, 20));
        for (var message : World.receive(consumer, 20)) {
            if (World.number(message) < 10) {
                consumer.acknowledge(message);
            } else {
                consumer.negativeAcknowledge(message);
            }
        }
        Check.payloads(World.numbered(10, 20), World.receiveAndAck(consumer, 10));
        World.nothingMore(consumer);
    }

    private static void redeliveryCount(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = shared(w, topic).subscribe();
        var other = shared(w, topic).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 20));
        for (int count = 0; count < 4; count++) {
            var got = World.drain(List.of(consumer, other), 20, false);
            for (int i = 0; i < 2; i++) {
                for (var message : got.get(i)) {
                    Check.same(count, message.getRedeliveryCount(), "count of " + World.text(message));
                    var by = i == 0 ? consumer : other;
                    if (count == 3) {
                        by.acknowledge(message);
                    } else {
                        by.negativeAcknowledge(message);
                    }
                }
            }
        }
        World.nothingMore(consumer, other);
    }

    private static void ackTimeout(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = shared(w, topic).ackTimeout(1, TimeUnit.SECONDS)
                .ackTimeoutTickTime(200, TimeUnit.MILLISECONDS).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 10));
        for (var message : World.receive(consumer, 10)) {
            if (World.number(message) % 2 == 0) {
                consumer.acknowledge(message);
            }
        }
        for (var message : World.receiveAndAck(consumer, 5)) {
            Check.same(1, World.number(message) % 2, "again, " + World.text(message));
        }
        World.nothingMore(consumer);
    }

    private static void redeliverUnacknowledged(World w) throws Exception {
        for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Shared)) {
            String topic = w.topic(type.toString());
            var consumer = w.consumer(topic).subscriptionType(type).isAckReceiptEnabled(true)
                    .subscribe();
            World.sendAll(w.producer(topic).create(), World.numbered(0, 10));
            consumer.acknowledge(World.receive(consumer, 10).get(0));
            consumer.redeliverUnacknowledgedMessages();
            Check.payloads(World.numbered(1, 10), World.receiveAndAck(consumer, 9));
            World.nothingMore(consumer);
        }
    }

    private static void deadLetterPolicy(World w) throws Exception {
        String topic = w.topic("t");
        var dead = w.client.newConsumer().topic(topic + "-sub-DLQ").subscriptionName("watch")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).subscribe();
        var consumer = shared(w, topic).deadLetterPolicy(
                DeadLetterPolicy.builder().maxRedeliverCount(2).build()).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 10));
        for (int i = 0; i < 30; i++) {
            consumer.negativeAcknowledge(World.receive(consumer));
        }
        var got = World.receiveAndAck(dead, 10);
        Check.payloadsInAnyOrder(World.numbered(0, 10), got);
        for (var message : got) {
            Check.same(w.fullTopic("t"), message.getProperty("REAL_TOPIC"), "where it came from");
        }
        World.nothingMore(consumer, dead);
    }

    private static void deadLetterSubscription(World w) throws Exception {
        String topic = w.topic("t");
        String deadTopic = w.topic("dead");
        var consumer = shared(w, topic).deadLetterPolicy(DeadLetterPolicy.builder()
                .maxRedeliverCount(1).deadLetterTopic(deadTopic).initialSubscriptionName("kept")
                .build()).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 5));
        for (int i = 0; i < 10; i++) {
            consumer.negativeAcknowledge(World.receive(consumer));
        }
        Check.soon("the subscription is made with the producer",
                () -> w.admin.topics().getList("public/default").contains(w.fullTopic("dead"))
                        && w.admin.topics().getSubscriptions(deadTopic).contains("kept"));
        var dead = w.client.newConsumer().topic(deadTopic).subscriptionName("kept").subscribe();
        Check.payloadsInAnyOrder(World.numbered(0, 5), World.receiveAndAck(dead, 5));
    }

    private static void retryTopic(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = shared(w, topic).enableRetry(true).deadLetterPolicy(DeadLetterPolicy.builder()
                .maxRedeliverCount(2).retryLetterTopic(w.fullTopic("retry"))
                .deadLetterTopic(w.fullTopic("dead")).build()).subscribe();
        var dead = w.consumer(w.topic("dead")).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 5));
        for (int tries = 0; tries < 3; tries++) {
            for (Message<byte[]> message : World.receive(consumer, 5)) {
                Check.same(tries == 0 ? null : "" + tries, message.getProperty("RECONSUMETIMES"),
                        "tries of " + World.text(message));
                consumer.reconsumeLater(message, 100, TimeUnit.MILLISECONDS);
            }
        }
        Check.payloadsInAnyOrder(World.numbered(0, 5), World.receiveAndAck(dead, 5));
        World.nothingMore(consumer, dead);
    }

    /** Who acknowledges nothing gets no more than the limit, and goes on after half of it. */
    private static void unackedLimit(World w) throws Exception {
        String topic = w.topic("t");
        int limit = w.server.unackedLimit;
        var consumer = shared(w, topic).isAckReceiptEnabled(true).receiverQueueSize(100).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 2 * limit));
        var got = World.receive(consumer, limit);
        World.nothingMore(consumer);
        for (var message : got.subList(0, limit / 4)) {
            consumer.acknowledgeAsync(message);
        }
        World.nothingMore(consumer);
        for (var message : got.subList(limit / 4, limit)) {
            consumer.acknowledgeAsync(message);
        }
        // Not one by one: each would wait for its receipt, and for the client's group before.
        var rest = World.receive(consumer, limit);
        rest.forEach(consumer::acknowledgeAsync);
        got.addAll(rest);
        Check.payloadsInAnyOrder(World.numbered(0, 2 * limit), got);
    }
}
