package interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.MessageRouter;
import org.apache.pulsar.client.api.MessageRoutingMode;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.TopicMetadata;
import org.apache.pulsar.common.policies.data.AutoTopicCreationOverride;

/** Topics with partitions, made on first use, ended, deleted, moved, and over a broker that dies. */
final class Topics {
    private Topics() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("partitioned_round_robin", Topics::partitionedRoundRobin);
        features.put("partitioned_single", Topics::partitionedSingle);
        features.put("partitioned_custom_router", Topics::partitionedCustomRouter);
        features.put("partitioned_by_key", Topics::partitionedByKey);
        features.put("partitioned_grows", Topics::partitionedGrows);
        features.put("partitioned_deleted_is_empty", Topics::partitionedDeletedIsEmpty);
        features.put("auto_creation_rules", Topics::autoCreationRules);
        features.put("refused_topics", Topics::refusedTopics);
        features.put("terminated_topic", Topics::terminatedTopic);
        features.put("unload_while_busy", Topics::unloadWhileBusy);
        features.put("delete_with_clients", Topics::deleteWithClients);
        features.put("http_service_url", Topics::httpServiceUrl);
        features.put("tls", Topics::tls);
        features.put("tls_not_trusted", Topics::tlsNotTrusted);
        features.put("broker_restart", Topics::brokerRestart);
    }

    private static int partition(Message<byte[]> message) {
        return ((MessageIdAdv) message.getMessageId()).getPartitionIndex();
    }

    private static Set<Integer> partitions(List<Message<byte[]>> messages) {
        return messages.stream().map(Topics::partition).collect(Collectors.toSet());
    }

    /** In each partition the numbers only grow. */
    private static void inOrder(List<Message<byte[]>> messages) {
        Map<Integer, Integer> last = new HashMap<>();
        for (var message : messages) {
            int number = World.number(message);
            Integer before = last.put(partition(message), number);
            Check.that(before == null || before < number, number + " after " + before);
        }
    }

    private static List<Message<byte[]>> through(World w, ProducerBuilder<byte[]> producer, int n)
            throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 4);
        var consumer = w.consumer(topic).subscribe();
        World.sendAll(producer.create(), World.numbered(0, n));
        var got = World.receiveAndAck(consumer, n);
        Check.payloadsInAnyOrder(World.numbered(0, n), got);
        inOrder(got);
        World.nothingMore(consumer);
        return got;
    }

    private static void partitionedRoundRobin(World w) throws Exception {
        var got = through(w, w.producer(w.topic("t"))
                .messageRoutingMode(MessageRoutingMode.RoundRobinPartition), 400);
        Check.same(Set.of(0, 1, 2, 3), partitions(got), "partitions");
        Check.same(4, w.client.getPartitionsForTopic(w.topic("t"), false).get().size(), "partitions");
    }

    private static void partitionedSingle(World w) throws Exception {
        var got = through(w, w.batching(w.topic("t"))
                .messageRoutingMode(MessageRoutingMode.SinglePartition), 400);
        Check.same(1, partitions(got).size(), "partitions");
    }

    private static void partitionedCustomRouter(World w) throws Exception {
        var router = new MessageRouter() {
            @Override
            public int choosePartition(Message<?> message, TopicMetadata metadata) {
                return metadata.numPartitions() - 2;
            }
        };
        var got = through(w, w.producer(w.topic("t"))
                .messageRoutingMode(MessageRoutingMode.CustomPartition).messageRouter(router), 100);
        Check.same(Set.of(2), partitions(got), "partitions");
    }

    private static void partitionedByKey(World w) throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 3);
        var consumer = w.consumer(topic).subscribe();
        var producer = w.batching(topic).create();
        for (int i = 0; i < 300; i++) {
            producer.newMessage().key("key-" + i % 10).value(("message " + i).getBytes()).sendAsync();
        }
        producer.flush();
        var got = World.receiveAndAck(consumer, 300);
        Check.payloadsInAnyOrder(World.numbered(0, 300), got);
        inOrder(got);
        Map<String, Integer> home = new HashMap<>();
        for (var message : got) {
            Integer before = home.putIfAbsent(message.getKey(), partition(message));
            Check.that(before == null || before == partition(message), message.getKey() + " moved");
        }
        Check.that(Set.copyOf(home.values()).size() > 1, "keys are spread");
    }

    private static void partitionedGrows(World w) throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 2);
        var consumer = w.consumer(topic).autoUpdatePartitionsInterval(1, TimeUnit.SECONDS).subscribe();
        var producer = w.producer(topic).autoUpdatePartitionsInterval(1, TimeUnit.SECONDS)
                .messageRoutingMode(MessageRoutingMode.RoundRobinPartition).create();
        World.send(producer, World.numbered(0, 20));
        w.admin.topics().updatePartitionedTopic(topic, 5);
        Check.soon("the producer sees it", () -> producer.getNumOfPartitions() == 5);
        World.send(producer, World.numbered(20, 120));
        var got = World.receiveAndAck(consumer, 120);
        Check.payloadsInAnyOrder(World.numbered(0, 120), got);
        inOrder(got);
        Check.same(Set.of(0, 1, 2, 3, 4), partitions(got), "partitions");
    }

    private static void partitionedDeletedIsEmpty(World w) throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 2);
        var producer = w.producer(topic).create();
        World.send(producer, World.numbered(0, 10));
        producer.close();
        w.admin.topics().deletePartitionedTopic(topic);
        w.admin.topics().createPartitionedTopic(topic, 2);
        var consumer = w.consumer(topic).subscribe();
        World.send(w.producer(topic).create(), World.numbered(10, 20));
        Check.payloadsInAnyOrder(World.numbered(10, 20), World.receiveAndAck(consumer, 10));
        World.nothingMore(consumer);
    }

    private static void rule(World w, String namespace, boolean allowed, int partitions)
            throws Exception {
        var rule = AutoTopicCreationOverride.builder().allowAutoTopicCreation(allowed);
        if (allowed) {
            rule.topicType(partitions > 0 ? "partitioned" : "non-partitioned");
        }
        if (partitions > 0) {
            rule.defaultNumPartitions(partitions);
        }
        w.admin.namespaces().setAutoTopicCreation(namespace, rule.build());
    }

    private static void autoCreationRules(World w) throws Exception {
        String namespace = w.namespace("ns");
        String base = "persistent://" + namespace + "/";
        rule(w, namespace, false, 0);
        Check.refused(PulsarClientException.class, () -> w.producer(base + "none").create());
        Check.refused(PulsarClientException.class, () -> w.consumer(base + "none").subscribe());
        Check.same(List.of(), w.admin.topics().getList(namespace), "topics");
        rule(w, namespace, true, 3);
        w.producer(base + "three").create().send("x".getBytes());
        Check.same(3, w.client.getPartitionsForTopic(base + "three", false).get().size(),
                "partitions");
        Check.same(3, w.admin.topics().getPartitionedTopicMetadata(base + "three").partitions,
                "partitions by the admin");
        rule(w, namespace, true, 0);
        w.producer(base + "one").create().send("x".getBytes());
        Check.same(0, w.admin.topics().getPartitionedTopicMetadata(base + "one").partitions,
                "a topic without partitions");
        Check.refused(PulsarClientException.class,
                () -> w.producer(base + "three-partition-7").create());
    }

    private static void refusedTopics(World w) throws Exception {
        Check.refused(PulsarClientException.class,
                () -> w.producer("persistent://no-tenant/no-namespace/t").create());
        Check.refused(PulsarClientException.class,
                () -> w.consumer("persistent://public/no-such-namespace/t").subscribe());
        World.send(w.producer(w.topic("t")).create(), World.numbered(0, 1)); // the client goes on
    }

    private static void terminatedTopic(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        var ids = World.send(producer, World.numbered(0, 10));
        var consumer = w.consumer(topic).subscribe();
        var reader = w.client.newReader().topic(topic).startMessageId(MessageId.earliest).create();
        Check.that(!consumer.hasReachedEndOfTopic(), "it has not ended");
        Check.same(0, ids.get(9).compareTo(w.admin.topics().terminateTopic(topic)), "its last id");
        Check.refused(PulsarClientException.TopicTerminatedException.class,
                () -> producer.send("too late".getBytes()));
        Check.refused(PulsarClientException.TopicTerminatedException.class,
                () -> w.producer(topic).create());
        Check.payloads(World.numbered(0, 10), World.receiveAndAck(consumer, 10));
        Check.payloads(World.numbered(0, 10), World.read(reader, 10));
        Check.soon("the consumer hears of the end", consumer::hasReachedEndOfTopic);
        Check.soon("the reader hears of the end", reader::hasReachedEndOfTopic);
        World.nothingMore(consumer);
    }

    /** Publishes until told to stop; what was acknowledged must all come, each in its turn. */
    private static final class Publishing {
        private final AtomicBoolean stop = new AtomicBoolean();
        private final List<Integer> acked = new ArrayList<>();
        private final Thread thread;

        Publishing(World w, String topic) throws Exception {
            var producer = w.batching(topic).sendTimeout(0, TimeUnit.SECONDS).create();
            thread = new Thread(() -> run(producer));
            thread.start();
        }

        private void run(org.apache.pulsar.client.api.Producer<byte[]> producer) {
            try {
                for (int i = 0; !stop.get(); i++) {
                    int number = i;
                    producer.sendAsync(("message " + i).getBytes()).thenAccept(id -> {
                        synchronized (acked) {
                            acked.add(number);
                        }
                    });
                    Thread.sleep(0, 300_000);
                }
                producer.flush();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }

        int acked() {
            synchronized (acked) {
                return acked.size();
            }
        }

        void progress(int n) throws Exception {
            int before = acked();
            Check.soon("publishing goes on", () -> acked() >= before + n);
        }

        /** First appearances are in order and complete; gives how many came twice. */
        void check(Consumer<byte[]> consumer) throws Exception {
            stop.set(true);
            thread.join(30000);
            Check.that(!thread.isAlive(), "the last message is sent");
            int next = 0;
            while (next < acked()) {
                Message<byte[]> message = World.receive(consumer);
                consumer.acknowledge(message);
                int number = World.number(message);
                Check.that(number <= next, "message " + number + " came, " + next + " did not");
                next = Math.max(next, number + 1);
            }
            Check.same(IntStream.range(0, next).boxed().toList(),
                    acked.stream().sorted().toList(), "acknowledged to the producer");
        }
    }

    private static void unloadWhileBusy(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscribe();
        var publishing = new Publishing(w, topic);
        for (int i = 0; i < 5; i++) {
            publishing.progress(300);
            w.admin.topics().unload(topic);
        }
        publishing.progress(300);
        publishing.check(consumer);
    }

    private static void brokerRestart(World w) throws Exception {
        String topic = w.topic("t");
        var consumer = w.consumer(topic).subscribe();
        var publishing = new Publishing(w, topic);
        for (int i = 0; i < 3; i++) {
            publishing.progress(500);
            w.server.restart();
        }
        publishing.progress(500);
        publishing.check(consumer);
    }

    private static void deleteWithClients(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.producer(topic).create();
        var consumer = w.consumer(topic).subscribe();
        World.send(producer, World.numbered(0, 10));
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> w.admin.topics().delete(topic));
        Check.payloads(World.numbered(0, 10), World.receiveAndAck(consumer, 10));
        producer.close();
        consumer.close();
        w.admin.topics().delete(topic, true);
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> w.admin.topics().getStats(topic));
        Check.that(!w.admin.topics().getList("public/default").contains(w.fullTopic("t")), "it is gone");
        var busy = w.producer(topic).create();
        World.send(busy, World.numbered(10, 11));
        w.admin.topics().delete(topic, true); // under a producer's hands
        World.send(w.producer(topic).create(), World.numbered(11, 12));
        Check.payloads(World.numbered(11, 12), World.receiveAndAck(w.consumer(topic).subscribe(), 1));
    }

    private static void tls(World w) throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 8);
        var wanted = new ArrayList<byte[]>();
        for (String url : List.of(w.server.tlsUrl, w.server.tlsWebUrl)) {
            var client = w.secureClient(url, w.server.tlsTrust);
            World.send(client.newProducer().topic(topic).create(), World.numbered(0, 1000));
            wanted.addAll(World.numbered(0, 1000));
            var consumer = w.consumer(client, topic).subscriptionName("sub-" + wanted.size()).subscribe();
            Check.payloadsInAnyOrder(wanted, World.receiveAndAck(consumer, wanted.size()));
        }
    }

    private static void tlsNotTrusted(World w) throws Exception {
        var client = w.secureClient(w.server.tlsUrl, null);
        Check.refused(PulsarClientException.class, () -> client.newProducer().topic(w.topic("t")).create());
    }

    private static void httpServiceUrl(World w) throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 2);
        var client = w.anotherClient(w.server.webUrl);
        var consumer = w.consumer(client, topic).subscribe();
        World.send(client.newProducer().topic(topic).create(), World.numbered(0, 20));
        Check.payloadsInAnyOrder(World.numbered(0, 20), World.receiveAndAck(consumer, 20));
    }
}
