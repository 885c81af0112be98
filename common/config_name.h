/* config_name.h - which key a name means, and which it may have been meant to be. */
#ifndef COMMON_CONFIG_NAME_H
#define COMMON_CONFIG_NAME_H

#include "common/config.h"

const struct config_key *config_name_find(const struct config_table *t, const char *name);
const char *config_name_nearest(const struct config_table *t, const char *name); /* or NULL */

#endif
