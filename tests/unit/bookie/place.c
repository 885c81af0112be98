#include "tests/unit/bookie/place.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "metadata/init.h"

void place_set(struct place *p, const char *key_value)
{
    ck_assert_int_eq(config_set(&bookie_config_table, &p->conf, key_value, "test"), ERR_OK);
}

static void set_dir(struct place *p, const char *key, const char *name)
{
    char *text = mem_format("%s=%s/%s", key, p->dir, name);
    place_set(p, text);
    mem_free(text);
}

struct place *place_new(void)
{
    struct place *p = mem_new(struct place);
    const char *tmp = getenv("TMPDIR");
    p->disk = disk_real();
    snprintf(p->dir, sizeof p->dir, "%s/lgm-bookie-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(p->dir));
    ck_assert_int_eq(config_defaults(&bookie_config_table, &p->conf), ERR_OK);
    set_dir(p, "journalDirectories", "journal");
    set_dir(p, "ledgerDirectories", "ledgers");
    place_set(p, "bookiePort=0");
    place_set(p, "bookieId=b1");
    place_set(p, "advertisedAddress=127.0.0.1");
    place_set(p, "listenAddress=127.0.0.1");
    place_set(p, "journalMaxSizeMB=16");
    return p;
}

void place_forget(struct place *p, const char *name)
{
    char *command = mem_format("rm -rf '%s/%s'", p->dir, name);
    ck_assert_int_eq(system(command), 0);
    mem_free(command);
}

void place_drop(struct place **p)
{
    place_stop(*p);
    config_drop(&bookie_config_table, &(*p)->conf);
    place_forget(*p, "");
    mem_free(*p);
    *p = NULL;
}

void place_prepare(struct place *p)
{
    const struct cluster_urls urls = {0};
    char *dir = mem_format("%s/metadata", p->dir);
    ck_assert_int_eq(meta_rocks_open(&p->meta, dir), ERR_OK);
    mem_free(dir);
    ck_assert_int_eq(cluster_init(p->meta, "test", &urls), ERR_OK);
    loops_start(&p->loops, "io", 2);
}

enum err place_start(struct place *p)
{
    place_prepare(p);
    return place_open(p);
}

enum err place_open(struct place *p)
{
    const enum err err = bookie_start(&p->bookie, &p->conf, p->meta, &p->loops, p->disk);
    if (err)
        place_stop(p);
    return err;
}

void place_stop(struct place *p)
{
    bookie_stop(&p->bookie);
    if (!p->meta)
        return;
    meta_close(&p->meta);
    loops_stop(&p->loops);
}

void place_no_meta(struct place *p)
{
    place_forget(p, "metadata");
}
