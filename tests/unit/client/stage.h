/* stage.h - a loop, a fake broker and a client on it, and a story of what the client's user is
 * told.
 *
 * The story is a text, a line an event:
 *   ready | done 3 1:7 | done 3 TIMEOUT | resent 3 | failed TERMINATED | got 1:4 'text' | got 1:4/2
 * 'x' damaged 1:4 CHECKSUM | flushed OK | unsubscribed OK | closed
 */
#ifndef TESTS_UNIT_CLIENT_STAGE_H
#define TESTS_UNIT_CLIENT_STAGE_H

#include "client/client.h"
#include "common/metric.h"
#include "tests/lib/suite.h"
#include "tests/unit/client/fake_broker.h"

enum { SENDS_MAX = 4096 };

struct stage {
    struct loop *loop;
    struct fake_broker *broker;
    struct client *client;
    struct producer_conf p; /* for stage_producer(); callbacks set */
    struct consumer_conf c; /* for stage_consumer() */
    struct producer *producer;
    struct consumer *consumer;
    struct text story;
    struct send sends[SENDS_MAX];
    unsigned sent, done;
    char why[256];                                               /* failed()'s text */
    void (*received)(struct stage *s, const struct received *m); /* may be NULL */
    bool acks;                                                   /* whatever is received */
    unsigned to_bring;                                           /* done() sends so many more */
};

struct stage *stage_new(void); /* the client keeps alive every 30 s, gives up after 10 */
struct stage *stage_with(const struct client_conf *conf,
                         int max_message); /* url NULL: the broker */
void stage_drop(struct stage **s);

void stage_producer(struct stage *s); /* opened and ready */
void stage_consumer(struct stage *s);
void stage_send(struct stage *s, const char *text);
void stage_send_bytes(struct stage *s, const void *bytes, size_t len, const char *key);
void stage_close_producer(struct stage *s);
void stage_close_consumer(struct stage *s);
void stage_flush(struct stage *s);
void stage_unsubscribe(struct stage *s);

/* Run the loop until so many lines that begin so are in the broker's or the story's text. */
void until_told(struct stage *s, const char *front, unsigned n);
void until_story(struct stage *s, const char *front, unsigned n);
void until_pong(struct stage *s); /* all that the client had to say by now is said */
unsigned story_count(const struct stage *s, const char *front);
const char *story(const struct stage *s);
void stage_run(struct stage *s, uint64_t us); /* lets that much time pass */

#endif
