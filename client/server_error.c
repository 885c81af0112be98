#include "client/server_error.h"

#include "proto/pulsar.pb-c.h"

#define CODE(name) PULSAR__PROTO__SERVER_ERROR__##name

enum err server_error_to_err(int server_error)
{
    switch (server_error) {
    case CODE(MetadataError):
    case CODE(ServiceNotReady):
        return ERR_NOT_READY;
    case CODE(PersistenceError):
        return ERR_IO;
    case CODE(AuthenticationError):
        return ERR_UNAUTHORIZED;
    case CODE(AuthorizationError):
        return ERR_FORBIDDEN;
    case CODE(ConsumerBusy):
        return ERR_CONSUMER_BUSY;
    case CODE(ChecksumError):
        return ERR_CHECKSUM;
    case CODE(UnsupportedVersionError):
        return ERR_UNSUPPORTED_VERSION;
    case CODE(TopicNotFound):
        return ERR_TOPIC_NOT_FOUND;
    case CODE(SubscriptionNotFound):
        return ERR_SUBSCRIPTION_NOT_FOUND;
    case CODE(ConsumerNotFound):
        return ERR_CONSUMER_NOT_FOUND;
    case CODE(TooManyRequests):
        return ERR_BUSY;
    case CODE(TopicTerminatedError):
        return ERR_TERMINATED;
    case CODE(ProducerBusy):
        return ERR_PRODUCER_BUSY;
    case CODE(InvalidTopicName):
        return ERR_INVALID_NAME;
    case CODE(ProducerFenced):
        return ERR_FENCED;
    case CODE(UnknownError):
        return ERR_IO;
    default:
        return ERR_NOT_ALLOWED;
    }
}

bool err_is_worth_retrying(enum err err)
{
    return err_class(err) == CLASS_RETRY;
}
