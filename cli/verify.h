/* verify.h - `lgm verify`, alone, `produce` or `consume`: does a topic keep its promises? */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#define VERIFY_SUBSCRIPTION "verify"

int verify_produce(int argc, char **argv);
int verify_consume(int argc, char **argv);
int verify_both(int argc, char **argv);

#endif
