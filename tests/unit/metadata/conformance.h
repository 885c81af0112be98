/* conformance.h - what every metadata store must do, as cases that take a fresh one.
 *
 *   START_TEST(conforms)
 *   {
 *       struct metadata *m = open_mine();
 *       conformance_run(_i, m);
 *       meta_close(&m);
 *   }
 *   SUITE_LOOP(conforms, conformance_count())
 *
 * A case leaves no call or watch behind; it fails by Check's assertions.
 */
#ifndef TESTS_UNIT_METADATA_CONFORMANCE_H
#define TESTS_UNIT_METADATA_CONFORMANCE_H

#include "metadata/metadata.h"

int conformance_count(void);
void conformance_run(int i, struct metadata *m);

#endif
