#include "cli/payload.h"

#include <ctype.h>

#include "common/mem.h"

bool payload_is_text(struct view v)
{
    for (size_t i = 0; i < v.len; i++)
        if (v.base[i] < 0x20 && !isspace(v.base[i]))
            return false;
    return true;
}

char *payload_base64(struct view v)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = mem_alloc((v.len + 2) / 3 * 4 + 1), *at = out;
    for (size_t i = 0; i < v.len; i += 3) {
        uint32_t left = (uint32_t)(v.len - i), three = (uint32_t)v.base[i] << 16;
        three |= left > 1 ? (uint32_t)v.base[i + 1] << 8 : 0;
        three |= left > 2 ? v.base[i + 2] : 0;
        *at++ = digits[three >> 18];
        *at++ = digits[three >> 12 & 63];
        *at++ = left > 1 ? digits[three >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[three & 63] : '=';
    }
    *at = '\0';
    return out;
}

void payload_add(struct json_object *o, struct view payload)
{
    if (payload_is_text(payload)) {
        json_object_object_add(
            o, "payload", json_object_new_string_len((const char *)payload.base, (int)payload.len));
        return;
    }
    char *text = payload_base64(payload);
    json_object_object_add(o, "payloadBase64", json_object_new_string(text));
    mem_free(text);
}
