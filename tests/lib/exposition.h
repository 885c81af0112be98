/* exposition.h - reads Prometheus text the way a scraper does, and fails the test where one would.
 *
 * Each line must be HELP, TYPE or a sample; HELP and TYPE come once a name, before its samples;
 * the samples of a name stand together; labels are escaped and UTF-8; no series comes twice.
 */
#ifndef TESTS_LIB_EXPOSITION_H
#define TESTS_LIB_EXPOSITION_H

#include <stdbool.h>

void exposition_check(const char *text);
/* The value of `series`: a name, or a name with {labels} exactly as they are written. */
double exposition_value(const char *text, const char *series); /* fails the test: none */
bool exposition_has(const char *text, const char *series);

#endif
