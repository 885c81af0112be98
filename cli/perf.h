/* perf.h - the two sides of `lgm perf`. */
#ifndef CLI_PERF_H
#define CLI_PERF_H

#include "cli/perf_options.h"

int perf_produce(const struct perf_options *o);
int perf_consume(const struct perf_options *o); /* and read */

#endif
