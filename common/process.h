/* process.h - what the operating system knows of this process, as Prometheus text.
 *
 * Threads: any.
 */
#ifndef COMMON_PROCESS_H
#define COMMON_PROCESS_H

#include <stdint.h>

#include "common/metric.h"

uint64_t process_anonymous(void); /* bytes that are resident and not of a file */
void process_render(struct text *t, const char *labels); /* labels: `cluster="c"`, or NULL */

#endif
