#include "broker/broker.h"

#include <stddef.h>

/* Upstream keys that tune a JVM, ZooKeeper or caches that are not there. */
#define IGNORED(key)                                                               \
    {                                                                              \
        .name = key, .class = CONFIG_IGNORED, .type = CONFIG_STRING, .preset = "", \
        .what = "has no effect here"                                               \
    }
/* They promise what is not given: anything but the default stops the start. */
#define REFUSED(key, value, why)                                                                  \
    {                                                                                             \
        .name = key, .class = CONFIG_REFUSED, .type = CONFIG_STRING, .preset = value, .what = why \
    }

static const struct config_key keys[] = {
#define X(key, member, kind, def, least, most, when, text) \
    {.name = #key,                                         \
     .type = CONFIG_##kind,                                \
     .class = CONFIG_##when,                               \
     .offset = offsetof(struct broker_conf, member),       \
     .preset = def,                                        \
     .min = least,                                         \
     .max = most,                                          \
     .what = text},
#include "broker/config.def"
#undef X
    IGNORED("zookeeperServers"),
    IGNORED("configurationStoreServers"),
    IGNORED("configurationMetadataStoreUrl"),
    IGNORED("metadataStoreSessionTimeoutMillis"),
    IGNORED("metadataStoreOperationTimeoutSeconds"),
    IGNORED("metadataStoreCacheExpirySeconds"),
    IGNORED("zooKeeperSessionTimeoutMillis"),
    IGNORED("numHttpServerThreads"),
    IGNORED("numExecutorThreadPoolSize"),
    IGNORED("numOrderedExecutorThreads"),
    IGNORED("numCacheExecutorThreadPoolSize"),
    IGNORED("managedLedgerNumWorkerThreads"),
    IGNORED("managedLedgerNumSchedulerThreads"),
    IGNORED("managedLedgerCacheEvictionWatermark"),
    IGNORED("managedLedgerCacheEvictionTimeThresholdMillis"),
    IGNORED("managedLedgerDefaultMarkDeleteRateLimit"),
    IGNORED("managedLedgerDigestType"),
    IGNORED("bookkeeperNumberOfChannelsPerBookie"),
    IGNORED("bookkeeperClientThrottleValue"),
    IGNORED("loadBalancerEnabled"),
    IGNORED("loadManagerClassName"),
    IGNORED("exposeTopicLevelMetricsInPrometheus"),
    IGNORED("statsUpdateFrequencyInSecs"),
    REFUSED("authenticationEnabled", "false", "clients are not authenticated"),
    REFUSED("authorizationEnabled", "false", "everyone may do everything"),
    REFUSED("brokerServicePortTls", "", "connections are not encrypted"),
    REFUSED("webServicePortTls", "", "connections are not encrypted"),
    REFUSED("tlsEnabled", "false", "connections are not encrypted"),
    REFUSED("bookkeeperTLSClientAuthentication", "false", "bookies are spoken to in the clear"),
    REFUSED("haProxyProtocolEnabled", "false", "the PROXY protocol is not understood"),
    REFUSED("brokerDeduplicationEnabled", "false", "messages are not deduplicated"),
    REFUSED("transactionCoordinatorEnabled", "false", "there are no transactions"),
    REFUSED("ttlDurationDefaultInSeconds", "0", "messages do not expire"),
    REFUSED("backlogQuotaDefaultLimitBytes", "-1", "backlogs are not limited"),
    REFUSED("backlogQuotaDefaultLimitGB", "-1", "backlogs are not limited"),
    REFUSED("bookkeeperClientRackawarePolicyEnabled", "false", "bookies are not chosen by rack"),
    REFUSED("bookkeeperClientRegionawarePolicyEnabled", "false",
            "bookies are not chosen by region"),
    REFUSED("advertisedListeners", "", "there is one address only"),
    REFUSED("managedLedgerOffloadDriver", "", "ledgers are not offloaded"),
    REFUSED("allowAutoTopicCreationType", "non-partitioned", "topics are made without partitions"),
};

const struct config_table broker_config_table = {
    .keys = keys,
    .n = sizeof(keys) / sizeof(keys[0]),
};
