/* Which paths a route takes, and what it captures of them. */
#include "broker/admin/routes.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/suite.h"

static const struct {
    const char *pattern, *path, *captured;
} paths[] = {
    {"/a/b", "/a/b", ""},
    {"/a/b", "/a/b/", NULL},
    {"/a/b", "/a", NULL},
    {"/a/b", "/a/bc", NULL},
    {"/a/b", "", NULL},
    {"/a/b", "a/b", NULL},
    {"/a/{}", "/a/x", "x"},
    {"/a/{}", "/a/", NULL},
    {"/a/{}/c", "/a/x/c", "x"},
    {"/a/{}/c", "/a/x/d", NULL},
    {"/{}/{}", "/x%2Fy/z%20", "x/y,z "},
    {"/a/{}", "/a/x/y", NULL},
    {"/metrics/", "/metrics/", ""},
    {"/{word}/{}", "/word/x", "word,x"},
    {"/{word}/{}", "/other/x", NULL},
    {"/{word}/{}", "/word", NULL},
    {"/a/{}", "/a/%zz", NULL},
    {"/a/{}/{}", "/a/x+y/%2B+", "x y,+ "},
    {"/admin/v2/namespaces/{}", "/admin/v2/namespaces/x+y", "x+y"},
    {"/a/{}", "/a/x%00y", NULL},
};

START_TEST(matching)
{
    struct segments_of_path p;
    char joined[64] = "";

    ck_assert_int_eq(route_matches(paths[_i].pattern, paths[_i].path, &p),
                     paths[_i].captured != NULL);
    for (unsigned i = 0; i < p.n; i++) {
        size_t len = strlen(joined);
        snprintf(joined + len, sizeof(joined) - len, "%s%s", i ? "," : "", p.at[i]);
    }
    if (paths[_i].captured)
        ck_assert_str_eq(joined, paths[_i].captured);
    route_segments_drop(&p);
}
END_TEST

int main(void)
{
    return suite_run("routes",
                     (suite_case[]){SUITE_LOOP(matching, sizeof(paths) / sizeof(paths[0])), {0}});
}
