#include <stddef.h>

#include "bookie/bookie.h"

/* Upstream keys that tune a JVM, ZooKeeper or a storage engine that is not there. */
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
     .offset = offsetof(struct bookie_conf, member),       \
     .preset = def,                                        \
     .min = least,                                         \
     .max = most,                                          \
     .what = text},
#include "bookie/config.def"
#undef X
    IGNORED("zkServers"),
    IGNORED("zkTimeout"),
    IGNORED("zkRetryBackoffStartMs"),
    IGNORED("zkRetryBackoffMaxMs"),
    IGNORED("ledgerStorageClass"),
    IGNORED("numAddWorkerThreads"),
    IGNORED("numHighPriorityWorkerThreads"),
    IGNORED("numLongPollWorkerThreads"),
    IGNORED("numJournalCallbackThreads"),
    IGNORED("maxPendingAddRequestsPerThread"),
    IGNORED("journalMaxGroupWaitMSec"),
    IGNORED("journalBufferedEntriesThreshold"),
    IGNORED("journalFlushWhenQueueEmpty"),
    IGNORED("journalAdaptiveGroupWrites"),
    IGNORED("journalAlignmentSize"),
    IGNORED("journalFormatVersionToWrite"),
    IGNORED("journalMaxBackups"),
    IGNORED("journalPreAllocSizeMB"),
    IGNORED("journalWriteBufferSizeKB"),
    IGNORED("journalRemoveFromPageCache"),
    IGNORED("readBufferSizeBytes"),
    IGNORED("writeBufferSizeBytes"),
    IGNORED("entryLogFilePreallocationEnabled"),
    IGNORED("openFileLimit"),
    IGNORED("pageLimit"),
    IGNORED("pageSize"),
    IGNORED("dbStorage_readAheadCacheBatchSize"),
    IGNORED("dbStorage_rocksDB_blockCacheSize"),
    IGNORED("dbStorage_rocksDB_blockSize"),
    IGNORED("dbStorage_rocksDB_bloomFilterBitsPerKey"),
    IGNORED("dbStorage_rocksDB_maxSizeInLevel1MB"),
    IGNORED("dbStorage_rocksDB_numFilesInLevel0"),
    IGNORED("dbStorage_rocksDB_numLevels"),
    IGNORED("dbStorage_rocksDB_sstSizeInMB"),
    IGNORED("dbStorage_rocksDB_writeBufferSizeMB"),
    IGNORED("serverTcpNoDelay"),
    IGNORED("allowLoopback"),
    IGNORED("gcWaitTime"),
    IGNORED("gcOverreplicatedLedgerWaitTime"),
    IGNORED("minorCompactionInterval"),
    IGNORED("minorCompactionThreshold"),
    IGNORED("majorCompactionInterval"),
    IGNORED("majorCompactionThreshold"),
    IGNORED("statsProviderClass"),
    IGNORED("httpServerEnabled"),
    IGNORED("httpServerPort"),
    IGNORED("prometheusStatsHttpPort"),
    REFUSED("tlsProvider", "", "connections are not encrypted"),
    REFUSED("tlsProviderFactoryClass", "", "connections are not encrypted"),
    REFUSED("bookieAuthProviderFactoryClass", "", "clients are not authenticated"),
    REFUSED("journalSyncData", "true", "every add is synced before it is acknowledged"),
    REFUSED("journalWriteData", "true", "every add goes through the journal"),
    REFUSED("indexDirectories", "", "the index lives with the ledgers"),
    REFUSED("entryLogPerLedgerEnabled", "false", "entry logs are shared by all ledgers"),
    REFUSED("allowStorageExpansion", "false", "directories cannot be added"),
    REFUSED("autoRecoveryDaemonEnabled", "false", "there is no auto-recovery in a bookie"),
};

static const char *const aliases[] = {
    "journalDirectory", "journalDirectories", "ledgerDirectory", "ledgerDirectories", NULL,
};

const struct config_table bookie_config_table = {
    .keys = keys,
    .n = sizeof keys / sizeof keys[0],
    .aliases = aliases,
};
