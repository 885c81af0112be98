/* process.h - what the operating system knows of this process, as Prometheus text.
 *
 * Threads: any.
 */
#ifndef COMMON_PROCESS_H
#define COMMON_PROCESS_H

#include "common/metric.h"

void process_render(struct text *t, const char *labels); /* labels: `cluster="c"`, or NULL */

#endif
