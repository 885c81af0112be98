/* payload.h - the bytes of a message, for people and for JSON.
 *
 * Memory: gives.
 */
#ifndef CLI_PAYLOAD_H
#define CLI_PAYLOAD_H

#include <json-c/json.h>
#include <stdbool.h>

#include "common/buf.h"

bool payload_is_text(struct view v);
char *payload_base64(struct view v);
/* As "payload", or as "payloadBase64" when it is no text. */
void payload_add(struct json_object *o, struct view payload);

#endif
