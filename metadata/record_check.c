#include "metadata/record_check.h"

/* Messages of message fields, wherever they stand; the types are not recursive. */
static bool field_survives(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const char *at = (const char *)m;
    const ProtobufCMessage *const *one = (const void *)(at + f->offset);

    if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        return true;
    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return !*one || record_survives(*one);
    const ProtobufCMessage *const *many = *(const ProtobufCMessage *const *const *)one;
    size_t n = *(const size_t *)(const void *)(at + f->quantifier_offset);
    for (size_t i = 0; i < n; i++)
        if (!record_survives(many[i]))
            return false;
    return true;
}

bool record_survives(const ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->n_unknown_fields; i++)
        if (m->unknown_fields[i].tag == 0)
            return false;
    for (unsigned i = 0; i < m->descriptor->n_fields; i++)
        if (!field_survives(m, &m->descriptor->fields[i]))
            return false;
    return true;
}
