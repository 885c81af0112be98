#define PCRE2_CODE_UNIT_WIDTH 8
#include "broker/cluster/topic_pattern.h"

#include <pcre2.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/names.h"

/* Places in the workspace: three a state, for this byte and for the next. */
enum { WORKSPACE = 1000, CALLS = 10, HEAP_KB = 64 };

struct topic_pattern {
    char *text;
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    int workspace[WORKSPACE];
};

/* ---- what is compiled ---- */

static bool cut_end(char *prefix, const char *end)
{
    size_t len = strlen(prefix), cut = strlen(end);

    if (len < cut || strcmp(prefix + len - cut, end) != 0)
        return false;
    prefix[len - cut] = '\0';
    return true;
}

/* Without its domain, which may have an anchor before it.  Gives, or NULL. */
static char *without_domain(const char *text)
{
    const char *mark = strstr(text, "://");

    if (!mark)
        return mem_string(text);
    char *prefix = mem_string_n(text, (size_t)(mark - text));
    char *rest = NULL;
    if (cut_end(prefix, "non-persistent") || cut_end(prefix, "persistent"))
        rest = mem_format("%s%s", prefix, mark + 3);
    mem_free(prefix);
    return rest;
}

static pcre2_code *compile(const char *text)
{
    const uint32_t options = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY |
                             PCRE2_ANCHORED | PCRE2_ENDANCHORED;
    char *rest = without_domain(text);
    pcre2_code *code = NULL;
    PCRE2_SIZE at;
    int why;

    if (rest)
        code = pcre2_compile((PCRE2_SPTR)rest, PCRE2_ZERO_TERMINATED, options, &why, &at, NULL);
    mem_free(rest);
    return code;
}

enum err topic_pattern_new(struct topic_pattern **out, const char *text)
{
    pcre2_code *code = compile(text);

    if (!code)
        return ERR_INVALID_NAME;
    struct topic_pattern *p = mem_new(struct topic_pattern);
    p->text = mem_string(text);
    p->code = code;
    p->match = pcre2_match_data_create(1, NULL);
    p->limits = pcre2_match_context_create(NULL);
    pcre2_set_match_limit(p->limits, CALLS);
    pcre2_set_depth_limit(p->limits, CALLS);
    pcre2_set_heap_limit(p->limits, HEAP_KB);
    *out = p;
    return ERR_OK;
}

void topic_pattern_drop(struct topic_pattern **pp)
{
    struct topic_pattern *p = *pp;

    *pp = NULL;
    if (!p)
        return;
    pcre2_match_context_free(p->limits);
    pcre2_match_data_free(p->match);
    pcre2_code_free(p->code);
    mem_free(p->text);
    mem_free(p);
}

const char *topic_pattern_text(const struct topic_pattern *p)
{
    return p->text;
}

/* ---- matching ---- */

enum err topic_pattern_matches(struct topic_pattern *p, const char *full, bool *out)
{
    const char *mark = strstr(full, "://");
    const char *name = mark ? mark + 3 : full;
    const char *slash = strrchr(name, '/');
    const char *local = slash ? slash + 1 : name;
    size_t len = (size_t)(local - name) + topic_name_base_len(local);
    int rc = pcre2_dfa_match(p->code, (PCRE2_SPTR)name, len, 0, 0, p->match, p->limits,
                             p->workspace, WORKSPACE);

    *out = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return ERR_OK;
    /* Codes of bad UTF-8 are the first below "partial": such a name is what no pattern means. */
    return rc <= PCRE2_ERROR_UTF8_ERR1 && rc >= PCRE2_ERROR_UTF8_ERR21 ? ERR_OK : ERR_TOO_BIG;
}
