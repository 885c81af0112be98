package interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.admin.Topics;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.impl.MessageIdImpl;
import org.apache.pulsar.common.naming.TopicDomain;
import org.apache.pulsar.common.policies.data.AutoTopicCreationOverride;
import org.apache.pulsar.common.policies.data.BookieAffinityGroupData;
import org.apache.pulsar.common.policies.data.BookieInfo;
import org.apache.pulsar.common.policies.data.ClusterData;
import org.apache.pulsar.common.policies.data.PersistencePolicies;
import org.apache.pulsar.common.policies.data.Policies;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.TenantInfo;

/** The admin API, by Apache's Java client for it: what it reads out of our answers, what it throws. */
final class Administration {
    private Administration() {
    }

    static void addTo(Map<String, Feature> features) {
        features.put("admin_clusters", Administration::clusters);
        features.put("admin_tenants", Administration::tenants);
        features.put("admin_namespaces", Administration::namespaces);
        features.put("admin_retention", Administration::retention);
        features.put("admin_persistence", Administration::persistence);
        features.put("admin_bookie_affinity", Administration::bookieAffinity);
        features.put("admin_auto_topic_creation", Administration::autoTopicCreation);
        features.put("admin_namespace_properties", Administration::namespaceProperties);
        features.put("admin_replication_clusters", Administration::replicationClusters);
        features.put("admin_policies_not_there", Administration::policiesNotThere);
        features.put("admin_topics", Administration::topics);
        features.put("admin_topic_lists", Administration::topicLists);
        features.put("admin_partitioned_topics", Administration::partitionedTopics);
        features.put("admin_partitioned_stats", Administration::partitionedStats);
        features.put("admin_stats", Administration::stats);
        features.put("admin_internal_stats", Administration::internalStats);
        features.put("admin_subscriptions", Administration::subscriptions);
        features.put("admin_subscription_properties", Administration::subscriptionProperties);
        features.put("admin_skip", Administration::skip);
        features.put("admin_reset_cursor_by_id", Administration::resetCursorById);
        features.put("admin_reset_cursor_by_time", Administration::resetCursorByTime);
        features.put("admin_expire_by_time", Administration::expireByTime);
        features.put("admin_expire_by_id", Administration::expireById);
        features.put("admin_terminate", Administration::terminate);
        features.put("admin_terminate_partitioned", Administration::terminatePartitioned);
        features.put("admin_unload", Administration::unload);
        features.put("admin_delete", Administration::delete);
        features.put("admin_topic_properties", Administration::topicProperties);
        features.put("admin_last_message_id", Administration::lastMessageId);
        features.put("admin_backlog_size", Administration::backlogSize);
        features.put("admin_lookup", Administration::lookup);
        features.put("admin_non_persistent", Administration::nonPersistent);
        features.put("admin_brokers", Administration::brokers);
        features.put("admin_bookies", Administration::bookies);
    }

    private static String filled(World w, int messages) throws Exception {
        String topic = w.topic("t");
        World.sendAll(w.producer(topic).create(), World.numbered(0, messages));
        return topic;
    }

    private static long backlog(World w, String topic, String sub) throws Exception {
        return w.admin.topics().getStats(topic).getSubscriptions().get(sub).getMsgBacklog();
    }

    private static void clusters(World w) throws Exception {
        var clusters = w.admin.clusters();
        String mine = clusters.getClusters().get(0);
        Check.that(clusters.getCluster(mine).getServiceUrl().startsWith("http://"), "its url");
        String other = w.topic("other");
        Check.refused(PulsarAdminException.NotFoundException.class, () -> clusters.getCluster(other));
        var data = ClusterData.builder().serviceUrl("http://a:8080")
                .brokerServiceUrl("pulsar://a:6650").build();
        clusters.createCluster(other, data);
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> clusters.createCluster(other, data));
        Check.same("pulsar://a:6650", clusters.getCluster(other).getBrokerServiceUrl(), "url");
        clusters.updateCluster(other, ClusterData.builder().serviceUrl("http://b:8080").build());
        Check.same("http://b:8080", clusters.getCluster(other).getServiceUrl(), "updated");
        Check.that(clusters.getClusters().containsAll(List.of(mine, other)), "both are listed");
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> clusters.deleteCluster(mine));
        clusters.deleteCluster(other);
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> clusters.deleteCluster(other));
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> clusters.createCluster("not a name", data));
    }

    private static void tenants(World w) throws Exception {
        var tenants = w.admin.tenants();
        String cluster = w.admin.clusters().getClusters().get(0);
        String tenant = w.topic("t");
        var info = TenantInfo.builder().adminRoles(Set.of("root", "two"))
                .allowedClusters(Set.of(cluster)).build();
        tenants.createTenant(tenant, info);
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> tenants.createTenant(tenant, info));
        Check.same(Set.of("root", "two"), tenants.getTenantInfo(tenant).getAdminRoles(), "roles");
        tenants.updateTenant(tenant, TenantInfo.builder().allowedClusters(Set.of(cluster)).build());
        Check.same(Set.of(cluster), tenants.getTenantInfo(tenant).getAllowedClusters(), "clusters");
        Check.that(tenants.getTenants().containsAll(List.of("public", tenant)), "it is listed");
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> tenants.createTenant(tenant + "-2",
                        TenantInfo.builder().allowedClusters(Set.of("no-such-cluster")).build()));
        w.admin.namespaces().createNamespace(tenant + "/ns");
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> tenants.deleteTenant(tenant));
        w.admin.namespaces().deleteNamespace(tenant + "/ns");
        tenants.deleteTenant(tenant);
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> tenants.getTenantInfo(tenant));
    }

    private static void namespaces(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("plain");
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> namespaces.createNamespace(namespace));
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> namespaces.createNamespace("no-tenant/ns"));
        String split = "public/" + w.topic("split");
        namespaces.createNamespace(split, 8);
        Check.same(8, namespaces.getBundles(split).getNumBundles(), "bundles");
        Check.same(9, namespaces.getBundles(split).getBoundaries().size(), "boundaries");
        String withPolicies = "public/" + w.topic("policies");
        var policies = new Policies();
        policies.retention_policies = new RetentionPolicies(10, 20);
        namespaces.createNamespace(withPolicies, policies);
        Check.same(new RetentionPolicies(10, 20), namespaces.getRetention(withPolicies), "retention");
        Check.that(namespaces.getNamespaces("public")
                .containsAll(List.of("public/default", namespace, split)), "they are listed");
        Check.that(namespaces.getPolicies(namespace).bundles.getNumBundles() > 0, "policies");
        Check.same(List.of(), namespaces.getTopics(namespace), "topics");
        String topic = "persistent://" + namespace + "/t";
        w.admin.topics().createNonPartitionedTopic(topic);
        Check.same(List.of(topic), namespaces.getTopics(namespace), "topics");
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> namespaces.deleteNamespace(namespace));
        w.admin.topics().delete(topic);
        namespaces.deleteNamespace(namespace);
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> namespaces.getPolicies(namespace));
    }

    private static void retention(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        Check.same(null, namespaces.getRetention(namespace), "at first");
        namespaces.setRetention(namespace, new RetentionPolicies(60, -1));
        Check.same(new RetentionPolicies(60, -1), namespaces.getRetention(namespace), "set");
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> namespaces.setRetention(namespace, new RetentionPolicies(0, 5)));
        namespaces.removeRetention(namespace);
        Check.same(null, namespaces.getRetention(namespace), "removed");
    }

    private static void persistence(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        var one = new PersistencePolicies(1, 1, 1, 0);
        namespaces.setPersistence(namespace, one);
        Check.same(one, namespaces.getPersistence(namespace), "set");
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> namespaces.setPersistence(namespace, new PersistencePolicies(1, 2, 1, 0)));
        namespaces.removePersistence(namespace);
        Check.same(null, namespaces.getPersistence(namespace), "removed");
    }

    private static void bookieAffinity(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        Check.same(null, namespaces.getBookieAffinityGroup(namespace), "at first");
        var groups = BookieAffinityGroupData.builder().bookkeeperAffinityGroupPrimary("gold,platinum")
                .bookkeeperAffinityGroupSecondary("silver").build();
        namespaces.setBookieAffinityGroup(namespace, groups);
        Check.same(groups, namespaces.getBookieAffinityGroup(namespace), "set");
        var one = BookieAffinityGroupData.builder().bookkeeperAffinityGroupPrimary("gold").build();
        namespaces.setBookieAffinityGroup(namespace, one);
        Check.same(one, namespaces.getBookieAffinityGroup(namespace), "set again");
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> namespaces.setBookieAffinityGroup(namespace, BookieAffinityGroupData.builder()
                        .bookkeeperAffinityGroupPrimary("").build()));
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> namespaces.setBookieAffinityGroup(namespace + "-none", one));
        namespaces.deleteBookieAffinityGroup(namespace);
        Check.same(null, namespaces.getBookieAffinityGroup(namespace), "removed");
    }

    private static void autoTopicCreation(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        Check.same(null, namespaces.getAutoTopicCreation(namespace), "at first");
        var rule = AutoTopicCreationOverride.builder().allowAutoTopicCreation(true)
                .topicType("partitioned").defaultNumPartitions(3).build();
        namespaces.setAutoTopicCreation(namespace, rule);
        Check.same(rule, namespaces.getAutoTopicCreation(namespace), "set");
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> namespaces.setAutoTopicCreation(namespace, AutoTopicCreationOverride.builder()
                        .allowAutoTopicCreation(true).topicType("round").build()));
        namespaces.removeAutoTopicCreation(namespace);
        Check.same(null, namespaces.getAutoTopicCreation(namespace), "removed");
    }

    private static void namespaceProperties(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        namespaces.setProperty(namespace, "team", "blue");
        namespaces.setProperties(namespace, Map.of("floor", "3", "room", "a b"));
        Check.same(Map.of("team", "blue", "floor", "3", "room", "a b"),
                namespaces.getProperties(namespace), "all");
        Check.same("a b", namespaces.getProperty(namespace, "room"), "one");
        Check.same("3", namespaces.removeProperty(namespace, "floor"), "the removed one");
        namespaces.clearProperties(namespace);
        Check.same(Map.of(), namespaces.getProperties(namespace), "cleared");
    }

    private static void replicationClusters(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        String cluster = w.admin.clusters().getClusters().get(0);
        Check.same(List.of(cluster), namespaces.getNamespaceReplicationClusters(namespace), "at first");
        namespaces.setNamespaceReplicationClusters(namespace, Set.of(cluster), false);
        Check.refused(PulsarAdminException.class, () -> namespaces
                .setNamespaceReplicationClusters(namespace, Set.of("no-such-cluster"), false));
    }

    /** What has no effect yet is refused with the reason, not taken in silence. */
    private static void policiesNotThere(World w) throws Exception {
        var namespaces = w.admin.namespaces();
        String namespace = w.namespace("ns");
        var e = Check.refused(PulsarAdminException.class,
                () -> namespaces.setDeduplicationStatus(namespace, true));
        Check.same(501, e.getStatusCode(), "status");
        Check.that(e.getHttpError() != null && !e.getHttpError().isEmpty(), "a reason");
    }

    private static void topics(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = w.fullTopic("t");
        topics.createNonPartitionedTopic(topic);
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> topics.createNonPartitionedTopic(topic));
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> topics.createPartitionedTopic(topic, 2));
        Check.same(0, topics.getPartitionedTopicMetadata(topic).partitions, "partitions");
        Check.that(topics.getList("public/default").contains(topic), "it is listed");
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.createNonPartitionedTopic("persistent://public/no-namespace/t"));
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.getStats(w.fullTopic("none")));
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.delete(w.fullTopic("none")));
        topics.delete(topic);
        Check.that(!topics.getList("public/default").contains(topic), "it is gone");
    }

    private static void topicLists(World w) throws Exception {
        var topics = w.admin.topics();
        String namespace = w.namespace("ns");
        String base = "persistent://" + namespace + "/";
        topics.createNonPartitionedTopic(base + "one");
        topics.createPartitionedTopic(base + "two", 2);
        Check.same(Set.of(base + "one", base + "two-partition-0", base + "two-partition-1"),
                Set.copyOf(topics.getList(namespace)), "topics");
        Check.same(List.of(base + "two"), topics.getPartitionedTopicList(namespace), "partitioned");
        Check.same(3, topics.getList(namespace, TopicDomain.persistent).size(), "persistent");
        Check.same(List.of(), topics.getList(namespace, TopicDomain.non_persistent), "others");
        String bundle = w.admin.lookups().getBundleRange(base + "one");
        Check.that(topics.getList(namespace, TopicDomain.persistent,
                Map.of(Topics.QueryParam.Bundle, bundle)).contains(base + "one"), "by bundle");
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.getList("public/no-namespace"));
    }

    private static void partitionedTopics(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = w.fullTopic("t");
        topics.createPartitionedTopic(topic, 3, Map.of("a", "b"));
        var metadata = topics.getPartitionedTopicMetadata(topic);
        Check.same(3, metadata.partitions, "partitions");
        Check.same(Map.of("a", "b"), metadata.properties, "properties");
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> topics.createPartitionedTopic(topic, 3));
        topics.updatePartitionedTopic(topic, 5);
        Check.same(5, topics.getPartitionedTopicMetadata(topic).partitions, "grown");
        Check.refused(PulsarAdminException.class, () -> topics.updatePartitionedTopic(topic, 4));
        topics.createMissedPartitions(topic);
        for (int i = 0; i < 5; i++) {
            topics.getStats(topic + "-partition-" + i);
        }
        topics.deletePartitionedTopic(topic);
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.deletePartitionedTopic(topic));
        Check.that(topics.getList("public/default").stream().noneMatch(t -> t.startsWith(topic)),
                "all partitions are gone");
    }

    private static void partitionedStats(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = w.fullTopic("t");
        topics.createPartitionedTopic(topic, 3);
        var consumer = w.consumer(topic).subscribe();
        World.send(w.producer(topic).create(), World.numbered(0, 30));
        World.receive(consumer, 30);
        var stats = topics.getPartitionedStats(topic, true);
        Check.same(3, stats.getMetadata().partitions, "partitions");
        Check.same(3, stats.getPartitions().size(), "partitions' stats");
        Check.same(30L, stats.getMsgInCounter(), "messages in");
        Check.same(30L, stats.getSubscriptions().get("sub").getMsgBacklog(), "backlog");
        var inside = topics.getPartitionedInternalStats(topic);
        Check.same(3, inside.partitions.size(), "partitions' internal stats");
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.getPartitionedStats(w.fullTopic("none"), true));
    }

    private static void stats(World w) throws Exception {
        String topic = w.topic("t");
        var producer = w.client.newProducer().topic(topic).producerName("writer")
                .property("p", "q").enableBatching(false).create();
        var consumer = w.consumer(topic).subscribe();
        World.send(producer, World.numbered(0, 40));
        World.receiveAndAck(consumer, 40);
        Check.soon("nothing is left", () -> backlog(w, topic, "sub") == 0);
        var stats = w.admin.topics().getStats(topic, true, true, true);
        Check.same(40L, stats.getMsgInCounter(), "messages in");
        Check.that(stats.getBytesInCounter() > 40 * 9, "bytes in");
        Check.same(40L, stats.getMsgOutCounter(), "messages out");
        Check.that(stats.getStorageSize() > 0, "stored");
        Check.same(1, stats.getPublishers().size(), "producers");
        var publisher = stats.getPublishers().get(0);
        Check.same("writer", publisher.getProducerName(), "producer");
        Check.same(Map.of("p", "q"), publisher.getMetadata(), "its metadata");
        Check.that(publisher.getAddress() != null && publisher.getConnectedSince() != null
                && publisher.getClientVersion().contains("Pulsar-Java"), "who it is");
        var sub = stats.getSubscriptions().get("sub");
        Check.same("Exclusive", sub.getType(), "type");
        Check.same(1, sub.getConsumers().size(), "consumers");
        Check.that(sub.isDurable() && sub.getMsgOutCounter() == 40, "subscription");
        Check.that(stats.getOwnerBroker() != null, "owner");
    }

    private static void internalStats(World w) throws Exception {
        String topic = filled(w, 25);
        w.admin.topics().createSubscription(topic, "sub", MessageId.earliest);
        var stats = w.admin.topics().getInternalStats(topic, true);
        Check.same(25L, stats.entriesAddedCounter, "entries added");
        Check.same(25L, stats.numberOfEntries, "entries");
        Check.same("LedgerOpened", stats.state, "state");
        Check.that(stats.ledgers.size() >= 1 && stats.ledgers.get(0).ledgerId >= 0, "ledgers");
        Check.that(stats.lastConfirmedEntry.endsWith(":24"), "last: " + stats.lastConfirmedEntry);
        var cursor = stats.cursors.get("sub");
        Check.that(cursor.markDeletePosition.endsWith(":-1"), "mark: " + cursor.markDeletePosition);
        Check.that(w.admin.topics().getInternalInfo(topic).contains("ledgers"), "info");
    }

    private static void subscriptions(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = filled(w, 10);
        Check.same(List.of(), topics.getSubscriptions(topic), "at first");
        topics.createSubscription(topic, "all", MessageId.earliest);
        topics.createSubscription(topic, "none", MessageId.latest);
        topics.createSubscription(topic, "with-properties", MessageId.earliest, false,
                Map.of("a", "b"));
        Check.refused(PulsarAdminException.ConflictException.class,
                () -> topics.createSubscription(topic, "all", MessageId.latest));
        Check.same(Set.of("all", "none", "with-properties"),
                Set.copyOf(topics.getSubscriptions(topic)), "subscriptions");
        Check.same(10L, backlog(w, topic, "all"), "backlog from the start");
        Check.same(0L, backlog(w, topic, "none"), "backlog from now on");
        var consumer = w.consumer(topic).subscriptionName("all").subscribe();
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> topics.deleteSubscription(topic, "all"));
        Check.payloads(World.numbered(0, 10), World.receiveAndAck(consumer, 10));
        consumer.close();
        topics.deleteSubscription(topic, "all");
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.deleteSubscription(topic, "all"));
        topics.deleteSubscription(topic, "none", true);
        Check.same(List.of("with-properties"), topics.getSubscriptions(topic), "in the end");
    }

    private static void subscriptionProperties(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = filled(w, 1);
        topics.createSubscription(topic, "sub", MessageId.earliest, false, Map.of("a", "b"));
        Check.same(Map.of("a", "b"), topics.getSubscriptionProperties(topic, "sub"), "created");
        topics.updateSubscriptionProperties(topic, "sub", Map.of("c", "d", "e", "f"));
        topics.unload(topic);
        Check.same(Map.of("c", "d", "e", "f"), topics.getSubscriptionProperties(topic, "sub"),
                "updated and kept");
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.getSubscriptionProperties(topic, "none"));
    }

    private static void skip(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = filled(w, 50);
        topics.createSubscription(topic, "sub", MessageId.earliest);
        topics.skipMessages(topic, "sub", 20);
        Check.same(30L, backlog(w, topic, "sub"), "after 20");
        var consumer = w.consumer(topic).subscribe();
        Check.payloads(World.numbered(20, 50), World.receive(consumer, 30));
        consumer.close();
        topics.skipAllMessages(topic, "sub");
        Check.same(0L, backlog(w, topic, "sub"), "after all");
        World.nothingMore(w.consumer(topic).subscribe());
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.skipAllMessages(topic, "none"));
    }

    private static void resetCursorById(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 50));
        topics.createSubscription(topic, "sub", MessageId.latest);
        topics.resetCursor(topic, "sub", ids.get(30));
        Check.same(20L, backlog(w, topic, "sub"), "from 30 on");
        topics.resetCursor(topic, "sub", ids.get(30), true);
        Check.same(19L, backlog(w, topic, "sub"), "behind 30");
        topics.resetCursor(topic, "sub", MessageId.earliest);
        Check.payloads(World.numbered(0, 50), World.receiveAndAck(w.consumer(topic).subscribe(), 50));
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> topics.resetCursor(topic, "none", ids.get(0)));
    }

    private static void resetCursorByTime(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = filled(w, 20);
        Thread.sleep(50);
        long between = System.currentTimeMillis();
        Thread.sleep(50);
        World.sendAll(w.producer(topic).create(), World.numbered(20, 30));
        topics.createSubscription(topic, "sub", MessageId.latest);
        topics.resetCursor(topic, "sub", between);
        Check.payloads(World.numbered(20, 30), World.receive(w.consumer(topic).subscribe(), 10));
        topics.resetCursor(topic, "sub", 0);
        Check.soon("everything is there again", () -> backlog(w, topic, "sub") == 30);
    }

    private static void expireByTime(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = filled(w, 20);
        topics.createSubscription(topic, "a", MessageId.earliest);
        topics.createSubscription(topic, "b", MessageId.earliest);
        Thread.sleep(3000);
        World.sendAll(w.producer(topic).create(), World.numbered(20, 30));
        topics.expireMessages(topic, "a", 2);
        Check.soon("20 are expired", () -> backlog(w, topic, "a") == 10);
        Check.same(30L, backlog(w, topic, "b"), "the other subscription's backlog");
        topics.expireMessagesForAllSubscriptions(topic, 2);
        Check.soon("20 are expired of all", () -> backlog(w, topic, "b") == 10);
    }

    private static void expireById(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 50));
        topics.createSubscription(topic, "sub", MessageId.earliest);
        topics.expireMessages(topic, "sub", ids.get(29), false);
        Check.soon("30 are expired", () -> backlog(w, topic, "sub") == 20);
        Check.payloads(World.numbered(30, 50), World.receive(w.consumer(topic).subscribe(), 20));
    }

    private static void terminate(World w) throws Exception {
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 5));
        Check.same(0, ids.get(4).compareTo(w.admin.topics().terminateTopic(topic)), "last id");
        Check.same(0, ids.get(4).compareTo(w.admin.topics().terminateTopic(topic)), "and again");
        Check.same("Terminated", w.admin.topics().getInternalStats(topic).state, "state");
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> w.admin.topics().terminateTopic(w.fullTopic("none")));
    }

    private static void terminatePartitioned(World w) throws Exception {
        String topic = w.topic("t");
        w.admin.topics().createPartitionedTopic(topic, 3);
        World.send(w.producer(topic).create(), World.numbered(0, 30));
        var last = w.admin.topics().terminatePartitionedTopic(topic);
        Check.same(Set.of(0, 1, 2), last.keySet(), "partitions");
        for (var id : last.values()) {
            Check.that(((MessageIdImpl) id).getEntryId() >= 0, "a last id: " + id);
        }
    }

    private static void unload(World w) throws Exception {
        String topic = filled(w, 10);
        w.admin.topics().unload(topic);
        w.admin.namespaces().unload("public/default");
        String range = w.admin.lookups().getBundleRange(topic);
        w.admin.namespaces().unloadNamespaceBundle("public/default", range);
        Check.payloads(World.numbered(0, 10), World.receiveAndAck(w.consumer(topic).subscribe(), 10));
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> w.admin.topics().unload(w.fullTopic("none")));
    }

    private static void delete(World w) throws Exception {
        var topics = w.admin.topics();
        String topic = filled(w, 10);
        var consumer = w.consumer(topic).subscribe();
        Check.refused(PulsarAdminException.PreconditionFailedException.class,
                () -> topics.delete(topic));
        consumer.close();
        topics.delete(topic, true);
        Check.refused(PulsarAdminException.NotFoundException.class, () -> topics.delete(topic));
    }

    private static void topicProperties(World w) throws Exception {
        var topics = w.admin.topics();
        for (int partitions : new int[] {0, 2}) {
            String topic = w.topic("p" + partitions);
            if (partitions > 0) {
                topics.createPartitionedTopic(topic, partitions, Map.of("a", "1"));
            } else {
                topics.createNonPartitionedTopic(topic, Map.of("a", "1"));
            }
            Check.same(Map.of("a", "1"), topics.getProperties(topic), "created");
            topics.updateProperties(topic, Map.of("b", "2"));
            Check.same(Map.of("a", "1", "b", "2"), topics.getProperties(topic), "updated");
            topics.removeProperties(topic, "a");
            Check.same(Map.of("b", "2"), topics.getProperties(topic), "removed");
        }
    }

    private static void lastMessageId(World w) throws Exception {
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 5));
        Check.same(0, ids.get(4).compareTo(w.admin.topics().getLastMessageId(topic)), "last id");
    }

    private static void backlogSize(World w) throws Exception {
        String topic = w.topic("t");
        var ids = World.sendAll(w.producer(topic).create(), World.numbered(0, 20));
        long all = w.admin.topics().getBacklogSizeByMessageId(topic, ids.get(0));
        long half = w.admin.topics().getBacklogSizeByMessageId(topic, ids.get(10));
        Check.that(all > half && half > 0, all + " from the first, " + half + " from the middle");
    }

    private static void lookup(World w) throws Exception {
        String topic = filled(w, 1);
        Check.that(w.admin.lookups().lookupTopic(topic).startsWith("pulsar://"), "where");
        String range = w.admin.lookups().getBundleRange(topic);
        Check.that(range.matches("0x[0-9a-f]{8}_0x[0-9a-f]{8}"), "bundle: " + range);
        w.admin.topics().createPartitionedTopic(w.topic("p"), 2);
        Check.same(2, w.admin.lookups().lookupPartitionedTopic(w.topic("p")).size(), "partitions");
    }

    private static void nonPersistent(World w) throws Exception {
        String topic = "non-persistent://public/default/" + w.topic("t");
        w.admin.topics().createNonPartitionedTopic(topic);
        w.client.newConsumer().topic(topic).subscriptionName("sub")
                .subscriptionType(SubscriptionType.Shared).subscribe();
        var stats = w.admin.topics().getStats(topic);
        Check.same(Set.of("sub"), stats.getSubscriptions().keySet(), "subscriptions");
        Check.same(List.of("sub"), w.admin.topics().getSubscriptions(topic), "listed");
        String parts = "non-persistent://public/default/" + w.topic("p");
        w.admin.topics().createPartitionedTopic(parts, 2);
        Check.same(2, w.admin.topics().getPartitionedTopicMetadata(parts).partitions, "partitions");
        w.admin.topics().deletePartitionedTopic(parts);
        w.admin.topics().delete(topic, true);
    }

    private static void brokers(World w) throws Exception {
        var brokers = w.admin.brokers();
        String cluster = w.admin.clusters().getClusters().stream()
                .filter(c -> !c.contains("admin-")).findFirst().orElseThrow();
        var active = new ArrayList<>(brokers.getActiveBrokers(cluster));
        Check.that(!active.isEmpty(), "there are some");
        Check.same(Set.copyOf(active), Set.copyOf(brokers.getActiveBrokers()), "the same without a name");
        Check.that(!brokers.getVersion().isEmpty(), "version");
        Check.that(active.contains(brokers.getLeaderBroker().getBrokerId()),
                "the leader is one of them: " + brokers.getLeaderBroker().getBrokerId());
        brokers.healthcheck();
        brokers.healthcheck(Optional.of(active.get(0)));
        Check.same(cluster, brokers.getRuntimeConfigurations().get("clusterName"), "configuration");
        Check.that(brokers.getDynamicConfigurationNames() != null, "dynamic names");
        Check.that(brokers.getAllDynamicConfigurations() != null, "dynamic values");
        brokers.getOwnedNamespaces(cluster, active.get(0));
        Check.that(brokers.getInternalConfigurationData() != null, "internal");
    }

    private static void bookies(World w) throws Exception {
        var bookies = w.admin.bookies();
        var all = bookies.getBookies().getBookies();
        Check.that(!all.isEmpty(), "there are some");
        String bookie = w.topic("bookie") + ":3181";
        bookies.updateBookieRackInfo(bookie, "group",
                BookieInfo.builder().rack("/r1").hostname("h1").build());
        Check.same("/r1", bookies.getBookieRackInfo(bookie).getRack(), "rack");
        Map<String, ?> groups = new HashMap<>(bookies.getBookiesRackInfo());
        Check.that(groups.containsKey("group"), "groups: " + groups.keySet());
        bookies.deleteBookieRackInfo(bookie);
        Check.refused(PulsarAdminException.NotFoundException.class,
                () -> bookies.getBookieRackInfo(bookie));
    }
}
