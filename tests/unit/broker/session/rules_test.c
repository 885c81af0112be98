/* Every type of command: welcome in which state, and nothing but that. */
#include "broker/session/rules.h"

#include "tests/lib/suite.h"

static bool welcome(int type, enum session_state state)
{
    command_fn *fn = NULL;
    return rules_find(type, state, &fn) == ERR_OK && fn;
}

START_TEST(only_connect_at_first)
{
    for (int type = -10; type < 300; type++)
        ck_assert_int_eq(welcome(type, SESSION_NEW),
                         type == PULSAR__PROTO__BASE_COMMAND__TYPE__CONNECT);
}
END_TEST

START_TEST(nothing_after_the_end)
{
    for (int type = -10; type < 300; type++)
        ck_assert(!welcome(type, SESSION_ENDED));
}
END_TEST

/* What a client may send once it is connected is taken, if only to be refused; what only
 * brokers send is not. */
START_TEST(every_command_of_a_client_has_a_handler)
{
    static const int mine[] = {4,  5,  6,  10, 11, 12, 15, 16, 18, 19, 20, 21, 23, 25,
                               28, 29, 32, 34, 39, 50, 52, 54, 56, 58, 60, 62, 64, 67};
    bool expected[300] = {false};

    for (unsigned i = 0; i < sizeof(mine) / sizeof(mine[0]); i++)
        expected[mine[i]] = true;
    for (int type = 0; type < 300; type++)
        ck_assert_msg(welcome(type, SESSION_READY) == expected[type], "type %d", type);
}
END_TEST

int main(void)
{
    return suite_run("rules", (suite_case[]){SUITE_CASE(only_connect_at_first),
                                             SUITE_CASE(nothing_after_the_end),
                                             SUITE_CASE(every_command_of_a_client_has_a_handler),
                                             {0}});
}
