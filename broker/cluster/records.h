/* records.h - how brokers write down who is alive and who owns what: JSON.
 *
 *   {"owner":"h1:8080","nonce":"5f..."}                       a bundle's record
 *   {"pulsarServiceUrl":"pulsar://h1:6650", ..., "nonce":...}  a registration: what Pulsar's
 *                                                             tools read there, and our nonce
 *
 * Memory: what is read is given, and dropped with the function below it.
 */
#ifndef BROKER_CLUSTER_RECORDS_H
#define BROKER_CLUSTER_RECORDS_H

#include <stdint.h>

#include "broker/cluster/ownership.h"
#include "common/buf.h"
#include "common/err.h"

struct owner_record {
    char *owner, *nonce; /* "" for nobody */
};
struct slice owner_record_write(const char *owner, const char *nonce); /* gives */
MUST_CHECK enum err owner_record_read(struct view text, struct owner_record *out);
void owner_record_drop(struct owner_record *r);

struct broker_record {
    char *nonce;
    char *service, *service_tls, *web, *web_tls; /* "" for what is not offered */
};
struct slice broker_record_write(const struct broker_urls *urls, const char *nonce,
                                 uint64_t started_ms); /* gives */
MUST_CHECK enum err broker_record_read(struct view text, struct broker_record *out);
void broker_record_drop(struct broker_record *r);

#endif
