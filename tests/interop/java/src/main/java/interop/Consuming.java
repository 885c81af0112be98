package interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.BatchReceivePolicy;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** Messages out: which consumer gets what, with which queue, from where on. */
final class Consuming {
    private Consuming() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("exclusive_second_is_busy", Consuming::exclusiveSecondIsBusy);
        features.put("type_conflict_is_busy", Consuming::typeConflictIsBusy);
        features.put("initial_positions", Consuming::initialPositions);
        features.put("each_subscription_gets_all", Consuming::eachSubscriptionGetsAll);
        features.put("shared_round_robin", Consuming::sharedRoundRobin);
        features.put("shared_priorities", Consuming::sharedPriorities);
        features.put("shared_consumer_goes", Consuming::sharedConsumerGoes);
        features.put("receiver_queue_one", Consuming::receiverQueueOne);
        features.put("receiver_queue_zero", Consuming::receiverQueueZero);
        features.put("message_listener", Consuming::messageListener);
        features.put("batch_receive", Consuming::batchReceive);
        features.put("consumer_stats", Consuming::consumerStats);
        features.put("subscription_properties", Consuming::subscriptionProperties);
    }

    private static void exclusiveSecondIsBusy(World w) throws Exception {
        String topic = w.topic("t");
        var first = w.consumer(topic).subscribe();
        var other = w.anotherClient();
        Check.refused(PulsarClientException.ConsumerBusyException.class,
                () -> w.consumer(other, topic).subscribe());
        w.producer(topic).create().send("message 0".getBytes());
        Check.payloads(World.numbered(0, 1), World.receiveAndAck(first, 1));
        first.close();
        World.nothingMore(w.consumer(other, topic).subscribe());
    }

    private static void typeConflictIsBusy(World w) throws Exception {
        String topic = w.topic("t");
        var shared = w.consumer(topic).subscriptionType(SubscriptionType.Shared);
        var first = shared.clone().subscribe();
        Check.refused(PulsarClientException.ConsumerBusyException.class,
                () -> w.consumer(topic).subscribe());
        first.close();
        var second = w.consumer(topic).subscribe();
        Check.refused(PulsarClientException.ConsumerBusyException.class,
                () -> shared.clone().subscribe());
        second.close();
        shared.subscribe();
    }

    private static void initialPositions(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        World.send(producer, World.numbered(0, 5));
        var earliest = w.consumer(topic).subscriptionName("from the start").subscribe();
        var latest = w.consumer(topic).subscriptionName("from now on")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Latest).subscribe();
        World.send(producer, World.numbered(5, 10));
        Check.payloads(World.numbered(0, 10), World.receiveAndAck(earliest, 10));
        Check.payloads(World.numbered(5, 10), World.receiveAndAck(latest, 5));
        latest.close();
        var again = w.consumer(topic).subscriptionName("from now on").subscribe();
        World.nothingMore(earliest, again); // the position of an old subscription stays
    }

    private static void eachSubscriptionGetsAll(World w) throws Exception {
        String topic = w.topic("t");
        var a = w.consumer(topic).subscriptionName("a").subscribe();
        var b = w.consumer(topic).subscriptionName("b").subscribe();
        var wanted = World.numbered(0, 1000);
        World.sendAll(w.batching(topic).create(), wanted);
        Check.payloads(wanted, World.receiveAndAck(a, 1000));
        Check.payloads(wanted, World.receiveAndAck(b, 1000));
    }

    @SuppressWarnings("unchecked")
    private static void sharedRoundRobin(World w) throws Exception {
        String topic = w.topic("t");
        List<Consumer<byte[]>> consumers = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            consumers.add(w.consumer(topic).subscriptionType(SubscriptionType.Shared)
                    .receiverQueueSize(50).subscribe());
        }
        var wanted = World.numbered(0, 2000);
        var sending = w.producer(topic).create();
        wanted.forEach(sending::sendAsync);
        var got = World.drain(consumers, 2000, true);
        Check.payloadsInAnyOrder(wanted, World.flat(got));
        var counts = got.stream().map(List::size).toList();
        Check.that(Collections.min(counts) > 200, "each gets its share: " + counts);
        World.nothingMore(consumers.toArray(new Consumer[0]));
    }

    private static void sharedPriorities(World w) throws Exception {
        String topic = w.topic("t");
        var builder = w.consumer(topic).subscriptionType(SubscriptionType.Shared);
        var first = builder.clone().priorityLevel(0).receiverQueueSize(100).subscribe();
        var second = builder.clone().priorityLevel(1).receiverQueueSize(1000).subscribe();
        var wanted = World.numbered(0, 250);
        World.sendAll(w.producer(topic).create(), wanted.subList(0, 60));
        World.nothingMore(second);
        World.sendAll(w.producer(topic).create(), wanted.subList(60, 250));
        var rest = World.receiveAndAck(second, 150);
        World.nothingMore(second); // the first has room for 100
        var got = World.receiveAndAck(first, 100);
        got.addAll(rest);
        Check.payloadsInAnyOrder(wanted, got);
        World.nothingMore(first, second);
    }

    private static void sharedConsumerGoes(World w) throws Exception {
        String topic = w.topic("t");
        var other = w.anotherClient();
        var stays = w.consumer(topic).subscriptionType(SubscriptionType.Shared).subscribe();
        var closes = w.consumer(topic).subscriptionType(SubscriptionType.Shared).subscribe();
        var dies = w.consumer(other, topic).subscriptionType(SubscriptionType.Shared).subscribe();
        var wanted = World.numbered(0, 300);
        World.sendAll(w.producer(topic).create(), wanted);
        var got = World.drain(List.of(stays, closes, dies), 300, false);
        for (var message : got.get(0)) {
            stays.acknowledge(message);
        }
        closes.close();
        other.shutdown();
        var all = new ArrayList<>(got.get(0));
        all.addAll(World.receiveAndAck(stays, 300 - all.size()));
        Check.payloadsInAnyOrder(wanted, all);
        World.nothingMore(stays);
    }

    private static void receiverQueueOne(World w) throws Exception {
        String topic = w.topic("t");
        var one = w.consumer(topic).receiverQueueSize(1).subscribe();
        var wanted = World.numbered(0, 200);
        World.sendAll(w.producer(topic).create(), wanted);
        World.sendAll(w.batching(topic).create(), World.numbered(200, 400));
        Check.payloads(World.numbered(0, 400), World.receiveAndAck(one, 400));
        World.nothingMore(one);
    }

    private static void receiverQueueZero(World w) throws Exception {
        String topic = w.topic("t");
        var builder = w.consumer(topic).subscriptionType(SubscriptionType.Shared);
        var zero = builder.clone().receiverQueueSize(0).subscribe();
        var other = builder.clone().receiverQueueSize(0).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 50));
        List<Message<byte[]>> got = new ArrayList<>();
        got.add(zero.receiveAsync().get(20, TimeUnit.SECONDS)); // and keeps none of the rest
        for (int i = 1; i < 50; i++) {
            got.add(other.receiveAsync().get(20, TimeUnit.SECONDS));
            other.acknowledge(got.get(i));
        }
        zero.acknowledge(got.get(0));
        Check.payloads(World.numbered(0, 50), got);
    }

    private static void messageListener(World w) throws Exception {
        String topic = w.topic("t");
        List<Message<byte[]>> got = Collections.synchronizedList(new ArrayList<>());
        var done = new CountDownLatch(500);
        var consumer = w.consumer(topic).messageListener((by, message) -> {
            got.add(message);
            by.acknowledgeAsync(message);
            done.countDown();
        }).subscribe();
        World.sendAll(w.batching(topic).create(), World.numbered(0, 500));
        Check.that(done.await(20, TimeUnit.SECONDS), "only " + got.size() + " of 500 messages");
        Check.payloads(World.numbered(0, 500), got);
        consumer.close();
        World.nothingMore(w.consumer(topic).subscribe());
    }

    private static void batchReceive(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).batchReceivePolicy(BatchReceivePolicy.builder()
                .maxNumMessages(30).timeout(200, TimeUnit.MILLISECONDS).build()).subscribe();
        World.sendAll(w.batching(topic).create(), World.numbered(0, 100));
        List<Message<byte[]>> got = new ArrayList<>();
        while (got.size() < 100) {
            var some = consumer.batchReceive();
            Check.that(some.size() > 0 && some.size() <= 30, some.size() + " at a time");
            some.forEach(got::add);
            consumer.acknowledge(some);
        }
        Check.payloads(World.numbered(0, 100), got);
        consumer.close();
        World.nothingMore(w.consumer(topic).subscribe());
    }

    private static void consumerStats(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscriptionType(SubscriptionType.Shared)
                .consumerName("one").property("room", "7").receiverQueueSize(100).subscribe();
        World.sendAll(w.producer(topic).create(), World.numbered(0, 20));
        var got = World.receive(consumer, 20);
        for (int i = 0; i < 5; i++) {
            consumer.acknowledgeAsync(got.get(i));
        }
        Check.same(20L, consumer.getStats().getNumMsgsReceived(), "received by the client's count");
        Check.soon("the acknowledgements are counted", () -> w.admin.topics().getStats(topic)
                .getSubscriptions().get("sub").getMsgBacklog() == 15);
        var sub = w.admin.topics().getStats(topic).getSubscriptions().get("sub");
        Check.same("Shared", sub.getType(), "type");
        Check.same(1, sub.getConsumers().size(), "consumers");
        var stats = sub.getConsumers().get(0);
        Check.same("one", stats.getConsumerName(), "name");
        Check.same(Map.of("room", "7"), stats.getMetadata(), "metadata");
        Check.same(15, stats.getUnackedMessages(), "unacknowledged");
        Check.same(20L, stats.getMsgOutCounter(), "messages out");
        Check.that(stats.getAvailablePermits() > 0, "permits");
    }

    private static void subscriptionProperties(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscriptionProperties(Map.of("team", "blue")).subscribe();
        var topics = w.admin.topics();
        Check.same(Map.of("team", "blue"), topics.getSubscriptionProperties(topic, "sub"), "first");
        Check.same(Map.of("team", "blue"), topics.getStats(topic).getSubscriptions().get("sub")
                .getSubscriptionProperties(), "in the stats");
        consumer.close();
        w.consumer(topic).subscriptionProperties(Map.of("team", "red")).subscribe();
        Check.same(Map.of("team", "blue"), topics.getSubscriptionProperties(topic, "sub"),
                "those of an old subscription stay");
        topics.updateSubscriptionProperties(topic, "sub", Map.of("team", "green", "floor", "3"));
        Check.same(Map.of("team", "green", "floor", "3"),
                topics.getSubscriptionProperties(topic, "sub"), "updated");
    }
}
