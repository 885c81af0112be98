/* flight.h - the flight recorder: what each thread did last, kept in a ring, free until needed.
 *
 * flight_note() writes one fixed record to the calling thread's ring.  The rings are
 * printed on a crash (SIGSEGV, SIGABRT, SIGBUS) or on SIGUSR2, newest last.
 *
 * Limits:  4,096 records a thread.
 * Threads: any.
 */
#ifndef COMMON_FLIGHT_H
#define COMMON_FLIGHT_H

#include <stdint.h>

void flight_note(const char *event, int64_t a, int64_t b); /* event must be a constant */
void flight_install(void);                                 /* signal handlers; once, from main */
void flight_dump(int fd);                                  /* async-signal-safe */

#endif
