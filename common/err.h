/* err.h - how failure is reported.
 *
 * A function that can fail returns `enum err`; zero is success.  Callers
 * decide by class (retry? blame the caller? give up?), never by listing codes,
 * so that a new code has one home: err.def.  What a person needs to know (file,
 * ledger, peer) goes into the log event at the place of failure.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#define MUST_CHECK __attribute__((warn_unused_result))

enum err {
#define X(sym, ...) ERR_##sym,
#include "common/err.def"
#undef X
    ERR_COUNT
};

enum err_class { CLASS_FINE, CLASS_RETRY, CLASS_CALLER, CLASS_FATAL };

const char *err_text(enum err e);
const char *err_name(enum err e); /* the symbol, for logs and tests */
enum err_class err_class(enum err e);
int err_to_pulsar(enum err e); /* a ServerError of the Pulsar protocol */
int err_to_bookie(enum err e); /* a status of the bookie protocol, v2 */
enum err err_of_errno(int saved_errno);

/* Pass a failure up: the only macro with control flow in the project. */
#define TRY(call)               \
    do {                        \
        enum err try_ = (call); \
        if (try_)               \
            return try_;        \
    } while (0)

#endif
