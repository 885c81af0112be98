#include "broker/cluster/ownership.h"

void ownership_find(struct ownership *o, const char *topic, struct ownership_call *c)
{
    o->ops->find(o, topic, c);
}

void ownership_close(struct ownership **o)
{
    if (*o)
        (*o)->ops->close(*o);
    *o = NULL;
}
