/* What is known but not there yet: refused with a sentence, in the form that the asker's
 * client understands as the end of its request (clients.md 2). */
#include "broker/session/checks.h"
#include "broker/session/reply.h"
#include "broker/session/rules.h"

#define TYPE(t)      PULSAR__PROTO__BASE_COMMAND__TYPE__##t
#define NOT_ALLOWED  PULSAR__PROTO__SERVER_ERROR__NotAllowedError
#define TRANSACTIONS (char *)(uintptr_t) "transactions are not supported yet"
#define SCHEMAS      (char *)(uintptr_t) "schemas are not supported yet"

/* The answers of one shape: request id, error, message under their usual names. */
#define ANSWER(s_, request_, Struct_, INIT_, TYPE_, member_, error_, message_, why_) \
    do {                                                                             \
        Pulsar__Proto__##Struct_ r = PULSAR__PROTO__##INIT_##__INIT;                 \
        r.request_id = (request_);                                                   \
        r.has_##error_ = true;                                                       \
        r.error_ = NOT_ALLOWED;                                                      \
        r.message_ = why_;                                                           \
        REPLY(base, TYPE_, member_, r);                                              \
        session_send(s_, &base);                                                     \
    } while (0)

/* Bytes need none: the empty version.  Java's dead letter and retry producers ask for it. */
static void tell_no_schema(struct session *s, uint64_t request)
{
    Pulsar__Proto__CommandGetOrCreateSchemaResponse r =
        PULSAR__PROTO__COMMAND_GET_OR_CREATE_SCHEMA_RESPONSE__INIT;

    r.request_id = request;
    r.has_schema_version = true;
    REPLY(base, GET_OR_CREATE_SCHEMA_RESPONSE, getorcreateschemaresponse, r);
    session_send(s, &base);
}

static void refuse_transaction(struct session *s, const Pulsar__Proto__BaseCommand *c)
{
    switch (c->type) {
    case TYPE(NEW_TXN):
        ANSWER(s, c->newtxn->request_id, CommandNewTxnResponse, COMMAND_NEW_TXN_RESPONSE,
               NEW_TXN_RESPONSE, newtxnresponse, error, message, TRANSACTIONS);
        break;
    case TYPE(ADD_PARTITION_TO_TXN):
        ANSWER(s, c->addpartitiontotxn->request_id, CommandAddPartitionToTxnResponse,
               COMMAND_ADD_PARTITION_TO_TXN_RESPONSE, ADD_PARTITION_TO_TXN_RESPONSE,
               addpartitiontotxnresponse, error, message, TRANSACTIONS);
        break;
    case TYPE(ADD_SUBSCRIPTION_TO_TXN):
        ANSWER(s, c->addsubscriptiontotxn->request_id, CommandAddSubscriptionToTxnResponse,
               COMMAND_ADD_SUBSCRIPTION_TO_TXN_RESPONSE, ADD_SUBSCRIPTION_TO_TXN_RESPONSE,
               addsubscriptiontotxnresponse, error, message, TRANSACTIONS);
        break;
    case TYPE(END_TXN):
        ANSWER(s, c->endtxn->request_id, CommandEndTxnResponse, COMMAND_END_TXN_RESPONSE,
               END_TXN_RESPONSE, endtxnresponse, error, message, TRANSACTIONS);
        break;
    case TYPE(END_TXN_ON_PARTITION):
        ANSWER(s, c->endtxnonpartition->request_id, CommandEndTxnOnPartitionResponse,
               COMMAND_END_TXN_ON_PARTITION_RESPONSE, END_TXN_ON_PARTITION_RESPONSE,
               endtxnonpartitionresponse, error, message, TRANSACTIONS);
        break;
    case TYPE(END_TXN_ON_SUBSCRIPTION):
        ANSWER(s, c->endtxnonsubscription->request_id, CommandEndTxnOnSubscriptionResponse,
               COMMAND_END_TXN_ON_SUBSCRIPTION_RESPONSE, END_TXN_ON_SUBSCRIPTION_RESPONSE,
               endtxnonsubscriptionresponse, error, message, TRANSACTIONS);
        break;
    default:
        ANSWER(s, c->tcclientconnectrequest->request_id, CommandTcClientConnectResponse,
               COMMAND_TC_CLIENT_CONNECT_RESPONSE, TC_CLIENT_CONNECT_RESPONSE,
               tcclientconnectresponse, error, message, TRANSACTIONS);
    }
}

enum err on_refused(struct session *s, const struct command *command)
{
    const Pulsar__Proto__BaseCommand *c = command->base;

    switch (c->type) {
    case TYPE(GET_SCHEMA):
        ANSWER(s, c->getschema->request_id, CommandGetSchemaResponse, COMMAND_GET_SCHEMA_RESPONSE,
               GET_SCHEMA_RESPONSE, getschemaresponse, error_code, error_message, SCHEMAS);
        break;
    case TYPE(GET_OR_CREATE_SCHEMA):
        if (checks_schema(c->getorcreateschema->schema))
            ANSWER(s, c->getorcreateschema->request_id, CommandGetOrCreateSchemaResponse,
                   COMMAND_GET_OR_CREATE_SCHEMA_RESPONSE, GET_OR_CREATE_SCHEMA_RESPONSE,
                   getorcreateschemaresponse, error_code, error_message, SCHEMAS);
        else
            tell_no_schema(s, c->getorcreateschema->request_id);
        break;
    default:
        refuse_transaction(s, c);
    }
    return ERR_OK;
}
