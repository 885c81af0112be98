/* put_off.h - back-pressure on one producer, never on its socket.
 *
 *   READY --no room--> PUT_OFF --all receipts are out--> TOLD (CLOSE_PRODUCER was sent)
 *     ^                                                   |  ^
 *     |                                       PRODUCER    v  | ServiceNotReady: no room for
 * WAITS_US
 *     +------------------room------------------------ RETURNING
 *
 * All that clients send is read: acks, flow and pings of a connection pass whatever its producers
 * do.  So a publish for which there is no room is dropped, and every later one of its producer, as
 * if they were still in the socket.  What was taken before is stored and answered; then the client
 * is told that its producer was closed.  It opens it again after its back-off, and sends again, in
 * order, exactly what was not answered: nothing is lost, doubled or out of its place.
 *
 * On the topic's side nothing changes, but for what `explain` says of it: the producer keeps its
 * name, its access and its epoch meanwhile, for COMES_BACK_US, or until somebody else asks for its
 * name.
 *
 * ROOM: publish_max (maxMessagePublishBufferSizeInMB, or a quarter of all memory) is what publishes
 * that are not answered may take of the whole process.  A producer may have as much of it as is
 * left for the others: one alone half, two a third each, n of them 1/(n+1) each.  So the greediest
 * meets its limit first, whoever comes next finds room, and it is never more than publish_max and
 * one message a loop.  One that comes back is let in while half is free.  Nobody has room while the
 * process is out of memory itself (memory_guard.h).
 *
 * Threads: the session's loop; what is used is counted by all of them.
 * Limits:  those who are told or return are handles: HANDLES_MAX a connection.
 */
#ifndef BROKER_SESSION_PUT_OFF_H
#define BROKER_SESSION_PUT_OFF_H

#include "broker/session/session.h"

enum { PUT_OFF_COMES_BACK_US = 15000000, PUT_OFF_WAITS_US = 5000000, PUT_OFF_LOOK_US = 20000 };

/* Pure: of `max`, all have `used`, of which this one has `own`. */
static inline bool put_off_has_room(size_t max, size_t used, size_t own, size_t bytes)
{
    return used < max && own + bytes <= max - used;
}

void put_off_init(struct sessions *home, const struct broker_conf *conf);
void put_off_end(struct sessions *home); /* nobody is put off any more */

/* One that is READY sends so much: is it taken?  If not, the producer is put off. */
bool put_off_takes(struct session_producer *p, size_t bytes);
void put_off_charge(struct session_producer *p, size_t bytes);
void put_off_discharge(struct session_producer *p, size_t bytes); /* it was answered */

/* One that is TOLD is asked for again: answers it now, or when there is room. */
void put_off_return(struct session_producer *p, uint64_t request, uint64_t epoch);
void put_off_forget(struct session_producer *p); /* it goes, in whatever state */
/* Its client was told and did not come back: somebody else may have its name. */
void put_off_give_up(struct session_producer *p);

#endif
