/* client_private.h - what the client's own files share of it. */
#ifndef CLIENT_CLIENT_PRIVATE_H
#define CLIENT_CLIENT_PRIVATE_H

#include "client/client.h"
#include "client/link.h"
#include "client/url.h"
#include "common/list.h"

struct client {
    struct loop *home;
    struct service_url service;
    struct link_env links;
    uint64_t next_producer;
    uint64_t next_consumer;
    struct list_node producers, consumers, asks;
};

/* What client_close() does to those that are still open. */
void producers_end(struct client *c);
void consumers_end(struct client *c);
void partitions_end(struct client *c);

#endif
