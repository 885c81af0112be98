/* peer.h - asks another broker what only it can answer: the owner of a topic's partition.
 *
 * Threads: a clerk's; it waits, WAIT_S at most.
 */
#ifndef BROKER_ADMIN_PEER_H
#define BROKER_ADMIN_PEER_H

#include "broker/admin/jobs.h"

/* A job that was answered with 307: asks there, and its answer becomes the job's. */
void peer_ask(struct job *j);

#endif
