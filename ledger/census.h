/* census.h - which bookies there are by their cookies, which are registered, which are to leave;
 * and what an operator has said about repairs: all of it as the metadata shows it now.
 *
 *   watches --any change--> list everything again --> changed()
 *
 * Threads: the loop's.
 */
#ifndef LEDGER_CENSUS_H
#define LEDGER_CENSUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/loop.h"

struct census;
struct metadata;

struct census *census_new(struct loop *l, struct metadata *meta, void (*changed)(void *ctx),
                          void *ctx); /* gives */
void census_drop(struct census **c);

/* Lists everything again, although nothing is known to have changed; then changed(). */
void census_look(struct census *c);
/* It shows everything that happened up to this revision of the store; 0: nothing yet. */
uint64_t census_revision(const struct census *c);
bool census_is_ready(const struct census *c); /* was listed once */
bool census_is_paused(const struct census *c);
uint64_t census_asked(const struct census *c); /* another number: an audit was asked for */
bool census_delay(const struct census *c, uint64_t *us); /* false: nobody has said one */

/* A number for as long as the census lives; one that nobody knew yet becomes known. */
uint32_t census_number(struct census *c, const char *bookie);
uint32_t census_count(const struct census *c);
const char *census_id(const struct census *c, uint32_t number);
bool census_is_here(const struct census *c, uint32_t number); /* writable or read-only */
bool census_has_cookie(const struct census *c, uint32_t number);
bool census_is_writable(const struct census *c, uint32_t number);
bool census_is_leaving(const struct census *c, uint32_t number);
bool census_cookie_goes(const struct census *c, uint32_t number); /* when it is empty */

#endif
