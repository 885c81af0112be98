/* server_error.h - a broker's error codes as ours, and which of them end an attempt.
 *
 * reference/clients.md 5: what real clients give up on, and what they try again.
 */
#ifndef CLIENT_SERVER_ERROR_H
#define CLIENT_SERVER_ERROR_H

#include <stdbool.h>

#include "common/err.h"

enum err server_error_to_err(int server_error);
bool err_is_worth_retrying(enum err err);

#endif
