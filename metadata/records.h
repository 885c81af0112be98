/* records.h - the only place that knows how a fact is written.
 *
 * A record in memory is the protobuf-c struct of the value (or a small struct of our own
 * for JSON), so that fields that we do not know survive every read-modify-write.
 *
 * Memory: readers give; end with the generated *__free_unpacked(record, NULL) or the _drop
 *         named here.  Writers give a slice.
 */
#ifndef METADATA_RECORDS_H
#define METADATA_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "proto/bookkeeper.pb-c.h"
#include "proto/managed_ledger.pb-c.h"

/* LedgerMetadataFormat behind "BookieMetadataFormatVersion\t3\n" and a varint length; version 2
 * (text) is read for the fields that a ledger needs.  bookkeeper.md C.3. */
MUST_CHECK enum err ledger_record_read(struct view value, Bookkeeper__LedgerMetadataFormat **out);
struct slice ledger_record_write(const Bookkeeper__LedgerMetadataFormat *r);

/* Plain protobuf, or wrapped in 0x4778 and compressed (read only).  An empty value is a record
 * without ledgers.  pulsar-broker.md B.2. */
MUST_CHECK enum err managed_ledger_record_read(struct view value,
                                               ManagedLedger__ManagedLedgerInfo **out);
struct slice managed_ledger_record_write(const ManagedLedger__ManagedLedgerInfo *r);
MUST_CHECK enum err cursor_record_read(struct view value, ManagedLedger__ManagedCursorInfo **out);
struct slice cursor_record_write(const ManagedLedger__ManagedCursorInfo *r);

/* What a bookie says of itself in /ledgers/available: where its protocol is spoken.  An empty
 * value means that the id is host:port. */
struct bookie_record {
    char *host;
    uint16_t port;
    char *http_host; /* NULL: none */
    uint16_t http_port;
};
MUST_CHECK enum err bookie_record_read(const char *bookie_id, struct view value,
                                       struct bookie_record *out); /* gives */
struct slice bookie_record_write(const char *bookie_id, const struct bookie_record *r);
void bookie_record_drop(struct bookie_record *r);

/* Where bookies stand, as Pulsar's tools write it: {"group":{"bookie":{"rack":"/region/rack"}}}. */
struct bookie_place {
    const char *group, *bookie, *rack; /* borrowed; rack "": not said */
};
MUST_CHECK enum err bookie_racks_read(struct view value,
                                      void (*each)(void *ctx, const struct bookie_place *p),
                                      void *ctx);

/* What a ledger's custom metadata says of where its bookies are to be: Pulsar's
 * EnsemblePlacementPolicyConfig as JSON. */
#define PLACEMENT_TAG "EnsemblePlacementPolicyConfig"
struct placement_record {
    char *groups, *second_groups; /* commas between them; "": those in no group; "*": any */
};
/* ERR_NOT_FOUND: it is another policy, which says nothing of groups. */
MUST_CHECK enum err placement_record_read(struct view value, struct placement_record *out);
void placement_record_drop(struct placement_record *r);
struct slice placement_record_write(const char *groups, const char *second_groups); /* gives */

/* UnderreplicatedLedgerFormat as text: a ledger lacks the copies that these bookies had. */
struct mark_record {
    unsigned n;
    char **replicas;
    int64_t ctime_ms; /* -1: not said */
};
MUST_CHECK enum err mark_record_read(struct view value, struct mark_record *out); /* gives */
struct slice mark_record_write(const struct mark_record *r);
bool mark_record_has(const struct mark_record *r, const char *bookie_id);
void mark_record_add(struct mark_record *r, const char *bookie_id); /* one that is not in it */
void mark_record_drop(struct mark_record *r);
/* CheckAllLedgersFormat: when all ledgers were looked through last, in ms since 1970. */
MUST_CHECK enum err time_record_read(struct view value, int64_t *ms);
struct slice time_record_write(int64_t ms);
struct slice lock_record_write(const char *bookie_id); /* LockDataFormat as text */

/* Cookie: "5\n" and CookieFormat as text, with an incarnation of ours in an unknown-to-others
 * way that BookKeeper's text parser ignores: a trailing comment line "# incarnation: <hex>". */
struct cookie_record {
    char *bookie_id, *journal_dirs, *ledger_dirs, *instance_id, *incarnation;
    char *index_dirs; /* NULL: none are named */
};
MUST_CHECK enum err cookie_record_read(struct view value, struct cookie_record *out); /* gives */
struct slice cookie_record_write(const struct cookie_record *r);
void cookie_record_drop(struct cookie_record *r);

/* {"partitions":N,...}: *partitions is 0 for a value without. */
MUST_CHECK enum err partitioned_record_read(struct view value, int32_t *partitions);
struct slice partitioned_record_write(int32_t partitions);

#endif
