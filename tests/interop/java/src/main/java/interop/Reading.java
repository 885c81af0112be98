package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.RegexSubscriptionMode;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;

/** Going to a place in a topic; readers; many topics at once. */
final class Reading {
    private Reading() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("seek_by_id", Reading::seekById);
        features.put("seek_in_batch", Reading::seekInBatch);
        features.put("seek_to_ends", Reading::seekToEnds);
        features.put("seek_by_time", Reading::seekByTime);
        features.put("last_message_id", Reading::lastMessageId);
        features.put("reader_earliest", Reading::readerEarliest);
        features.put("reader_latest", Reading::readerLatest);
        features.put("reader_from_id", Reading::readerFromId);
        features.put("reader_in_batch", Reading::readerInBatch);
        features.put("reader_has_message", Reading::readerHasMessage);
        features.put("reader_rollback", Reading::readerRollback);
        features.put("reader_seek", Reading::readerSeek);
        features.put("reader_leaves_no_subscription", Reading::readerLeavesNoSubscription);
        features.put("table_view", Reading::tableView);
        features.put("multi_topic", Reading::multiTopic);
        features.put("pattern", Reading::pattern);
        features.put("pattern_topic_appears_later", Reading::patternTopicAppearsLater);
        features.put("non_persistent", Reading::nonPersistent);
    }

    private static void seekById(World w) throws Exception {
        for (var type : List.of(SubscriptionType.Exclusive, SubscriptionType.Shared)) {
            String topic = w.topic(type.toString());
            var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 100));
            var consumer = w.consumer(topic).subscriptionType(type).startMessageIdInclusive()
                    .subscribe();
            World.receiveAndAck(consumer, 100);
            consumer.seek(ids.get(40));
            Check.payloads(World.numbered(40, 100), World.receiveAndAck(consumer, 60));
            World.nothingMore(consumer);
            consumer.seek(ids.get(95));
            Check.payloads(World.numbered(95, 100), World.receiveAndAck(consumer, 5));
            consumer.close();
            World.nothingMore(w.consumer(topic).subscriptionType(type).subscribe());
        }
    }

    private static void seekInBatch(World w) throws Exception {
        String topic = w.topic("t");
        w.sendBatch(topic, World.numbered(0, 10));
        w.sendBatch(topic, World.numbered(10, 20));
        var consumer = w.consumer(topic).startMessageIdInclusive().subscribe();
        var got = World.receive(consumer, 20);
        consumer.seek(got.get(13).getMessageId());
        Check.payloads(World.numbered(13, 20), World.receive(consumer, 7));
        consumer.close();
        consumer = w.consumer(topic).subscriptionName("exclusive of it").subscribe();
        got = World.receive(consumer, 20);
        consumer.seek(got.get(13).getMessageId());
        Check.payloads(World.numbered(14, 20), World.receive(consumer, 6));
    }

    private static void seekToEnds(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        World.sendAll(producer, World.numbered(0, 50));
        var consumer = w.consumer(topic).subscribe();
        consumer.seek(MessageId.latest);
        World.nothingMore(consumer);
        producer.send("message 50".getBytes());
        Check.payloads(World.numbered(50, 51), World.receiveAndAck(consumer, 1));
        consumer.seek(MessageId.earliest);
        Check.payloads(World.numbered(0, 51), World.receiveAndAck(consumer, 51));
    }

    private static void seekByTime(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        World.sendAll(producer, World.numbered(0, 50));
        Thread.sleep(50);
        long between = System.currentTimeMillis();
        Thread.sleep(50);
        World.sendAll(producer, World.numbered(50, 100));
        var consumer = w.consumer(topic).subscribe();
        World.receiveAndAck(consumer, 100);
        consumer.seek(between);
        Check.payloads(World.numbered(50, 100), World.receiveAndAck(consumer, 50));
        consumer.seek(0);
        Check.payloads(World.numbered(0, 100), World.receiveAndAck(consumer, 100));
        consumer.seek(System.currentTimeMillis() + 60000);
        World.nothingMore(consumer);
    }

    private static void lastMessageId(World w) throws Exception {
        String topic = w.fullTopic("t");
        var consumer = w.consumer(topic).subscribe();
        var last = consumer.getLastMessageIds();
        Check.same(1, last.size(), "topics");
        Check.same(w.fullTopic("t"), last.get(0).getOwnerTopic(), "topic");
        Check.that(last.get(0).compareTo(MessageId.earliest) == 0, "of an empty topic: " + last);
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 10));
        Check.same(0, ids.get(9).compareTo(consumer.getLastMessageIds().get(0)), "of singles");
        w.sendBatch(topic, World.numbered(10, 20));
        var got = World.receiveAndAck(consumer, 20);
        Check.same(0, got.get(19).getMessageId().compareTo(consumer.getLastMessageIds().get(0)),
                "of a batch");
    }

    private static Reader<byte[]> reader(World w, String topic, MessageId start) throws Exception {
        return w.client.newReader().topic(topic).startMessageId(start).create();
    }

    private static void readerEarliest(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        World.sendAll(producer, World.numbered(0, 100));
        var reader = reader(w, topic, MessageId.earliest);
        var second = reader(w, topic, MessageId.earliest);
        Check.payloads(World.numbered(0, 100), World.read(reader, 100));
        World.sendAll(producer, World.numbered(100, 3000));
        Check.payloads(World.numbered(100, 3000), World.read(reader, 2900));
        Check.payloads(World.numbered(0, 3000), World.read(second, 3000));
        World.nothingMore(reader);
    }

    private static void readerLatest(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        World.sendAll(producer, World.numbered(0, 10));
        var reader = reader(w, topic, MessageId.latest);
        World.nothingMore(reader);
        World.sendAll(producer, World.numbered(10, 20));
        Check.payloads(World.numbered(10, 20), World.read(reader, 10));
    }

    private static void readerFromId(World w) throws Exception {
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 100));
        Check.payloads(World.numbered(31, 100), World.read(reader(w, topic, ids.get(30)), 69));
        var inclusive = w.client.newReader().topic(topic).startMessageId(ids.get(30))
                .startMessageIdInclusive().create();
        Check.payloads(World.numbered(30, 100), World.read(inclusive, 70));
        World.nothingMore(reader(w, topic, ids.get(99)));
    }

    private static void readerInBatch(World w) throws Exception {
        String topic = w.topic("t");
        w.sendBatch(topic, World.numbered(0, 10));
        w.sendBatch(topic, World.numbered(10, 20));
        var got = World.read(reader(w, topic, MessageId.earliest), 20);
        var id = got.get(5).getMessageId();
        Check.payloads(World.numbered(6, 20), World.read(reader(w, topic, id), 14));
        var inclusive = w.client.newReader().topic(topic).startMessageId(id)
                .startMessageIdInclusive().create();
        Check.payloads(World.numbered(5, 20), World.read(inclusive, 15));
    }

    private static void readerHasMessage(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        var reader = reader(w, topic, MessageId.earliest);
        Check.that(!reader.hasMessageAvailable(), "an empty topic has none");
        World.sendAll(producer, World.numbered(0, 10));
        w.sendBatch(topic, World.numbered(10, 20));
        for (int i = 0; i < 20; i++) {
            Check.that(reader.hasMessageAvailable(), "message " + i + " is there");
            Check.same(i, World.number(World.read(reader, 1).get(0)), "message");
        }
        Check.that(!reader.hasMessageAvailable(), "that was the last");
        producer.send("message 20".getBytes());
        Check.that(reader.hasMessageAvailable(), "a new one");
        var latest = reader(w, topic, MessageId.latest);
        Check.that(!latest.hasMessageAvailable(), "none after the latest");
    }

    private static void readerRollback(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        World.sendAll(producer, World.numbered(0, 10));
        Thread.sleep(4000);
        World.sendAll(producer, World.numbered(10, 20));
        var recent = w.client.newReader().topic(topic)
                .startMessageFromRollbackDuration(2, TimeUnit.SECONDS).create();
        Check.payloads(World.numbered(10, 20), World.read(recent, 10));
        var all = w.client.newReader().topic(topic)
                .startMessageFromRollbackDuration(1, TimeUnit.HOURS).create();
        Check.payloads(World.numbered(0, 20), World.read(all, 20));
    }

    private static void readerSeek(World w) throws Exception {
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 50));
        var reader = reader(w, topic, MessageId.earliest);
        World.read(reader, 50);
        reader.seek(ids.get(20)); // behind it, as a reader's start is
        Check.payloads(World.numbered(21, 50), World.read(reader, 29));
        reader.seek(MessageId.earliest);
        Check.payloads(World.numbered(0, 50), World.read(reader, 50));
        reader.seek(0);
        Check.payloads(World.numbered(0, 50), World.read(reader, 50));
    }

    private static void readerLeavesNoSubscription(World w) throws Exception {
        String topic = w.topic("t");
        World.sendAll(w.producer(topic).create(), World.numbered(0, 10));
        var reader = reader(w, topic, MessageId.earliest);
        World.read(reader, 5);
        Check.same(1, w.admin.topics().getStats(topic).getSubscriptions().size(), "while it reads");
        reader.close();
        Check.soon("its subscription goes with it",
                () -> w.admin.topics().getSubscriptions(topic).isEmpty());
    }

    /** It waits for what is there only if the topic's whole name is given: else it takes it for a
     * non-persistent one. */
    private static void tableView(World w) throws Exception {
        String topic = w.fullTopic("t");
        var producer = w.client.newProducer(Schema.BYTES).topic(topic).create();
        for (int i = 0; i < 100; i++) {
            producer.newMessage().key("key-" + i % 10).value(("value " + i).getBytes()).send();
        }
        var view = w.client.newTableView().topic(topic).create();
        Check.same(10, view.size(), "keys");
        Check.same("value 93", new String(view.get("key-3")), "the last value of a key");
        var heard = new ConcurrentHashMap<String, String>();
        view.listen((key, value) -> heard.put(key, value == null ? "gone" : new String(value)));
        producer.newMessage().key("key-3").value("newest".getBytes()).send();
        producer.newMessage().key("key-4").value(null).send();
        Check.soon("the view follows", () -> "newest".equals(heard.get("key-3"))
                && !view.containsKey("key-4"));
        Check.same("newest", new String(view.get("key-3")), "the new value");
        Check.same(9, view.size(), "keys");
    }

    private static void multiTopic(World w) throws Exception {
        String[] topics = {w.topic("a"), w.topic("b"), w.topic("c")};
        w.admin.topics().createPartitionedTopic(topics[2], 2);
        var consumer = w.consumer(topics).subscribe();
        int sent = 0;
        for (String topic : topics) {
            World.send(w.producer(topic).create(), World.numbered(sent, sent + 20));
            sent += 20;
        }
        Check.payloadsInAnyOrder(World.numbered(0, 60), World.receiveAndAck(consumer, 60));
        World.nothingMore(consumer);
        consumer.close();
        World.nothingMore(w.consumer(topics).subscribe());
    }

    private static Consumer<byte[]> matching(World w, String pattern) throws Exception {
        return w.consumer().topicsPattern(Pattern.compile(pattern))
                .patternAutoDiscoveryPeriod(1, TimeUnit.MINUTES)
                .subscriptionTopicsMode(RegexSubscriptionMode.PersistentOnly).subscribe();
    }

    private static void pattern(World w) throws Exception {
        for (String topic : List.of("match-a", "match-b", "other")) {
            World.send(w.producer(w.topic(topic)).create(), List.of(topic.getBytes()));
        }
        w.admin.topics().createPartitionedTopic(w.topic("match-c"), 3);
        World.send(w.producer(w.topic("match-c")).create(), List.of("match-c".getBytes()));
        var consumer = matching(w, w.fullTopic("match-.*"));
        Check.payloadsInAnyOrder(
                List.of("match-a".getBytes(), "match-b".getBytes(), "match-c".getBytes()),
                World.receiveAndAck(consumer, 3));
        World.nothingMore(consumer);
    }

    /** The broker tells of it: the client itself would ask only once a minute. */
    private static void patternTopicAppearsLater(World w) throws Exception {
        World.send(w.producer(w.topic("match-a")).create(), List.of("first".getBytes()));
        // At most 50 characters; other clients' topics are not to match it.
        var consumer = matching(w, "persistent://public/default/j.*appears-later-m.*");
        Check.payloads(List.of("first".getBytes()), World.receiveAndAck(consumer, 1));
        World.send(w.producer(w.topic("match-b")).create(), List.of("later".getBytes()));
        Check.payloads(List.of("later".getBytes()), World.receiveAndAck(consumer, 1));
        w.admin.topics().createPartitionedTopic(w.topic("match-c"), 2);
        World.send(w.producer(w.topic("match-c")).create(), List.of("partitioned".getBytes()));
        Check.payloads(List.of("partitioned".getBytes()), World.receiveAndAck(consumer, 1));
        World.nothingMore(consumer);
    }

    private static void nonPersistent(World w) throws Exception {
        String topic = "non-persistent://public/default/" + w.topic("t");
        World.send(w.producer(topic).create(), World.numbered(0, 5)); // nobody listens: they are gone
        var one = w.consumer(topic).subscriptionName("a").subscribe();
        var two = w.client.newConsumer().topic(topic).subscriptionName("b")
                .subscriptionType(SubscriptionType.Shared)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Latest).subscribe();
        World.send(w.producer(topic).create(), World.numbered(5, 105));
        World.sendAll(w.batching(topic).create(), World.numbered(105, 205));
        Check.payloads(World.numbered(5, 205), World.receiveAndAck(one, 200));
        Check.payloads(World.numbered(5, 205), World.receiveAndAck(two, 200));
        World.nothingMore(one, two);
        var stats = w.admin.nonPersistentTopics().getStats(topic);
        Check.same(Set.of("a", "b"), Set.copyOf(stats.getSubscriptions().keySet()), "subscriptions");
        List<String> listed = new ArrayList<>(w.admin.topics().getList("public/default",
                org.apache.pulsar.common.naming.TopicDomain.non_persistent));
        Check.that(listed.contains(topic), "it is listed: " + listed);
    }
}
