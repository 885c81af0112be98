"""plants.py - what the enumeration must find: syncs that are left out by the layer, whatever the
code, and bugs planted in the code: (what is wrong, file, as it is, as it should not be, ...).

The text to be replaced must be in the file exactly once, so that a bug that can no longer be
planted is noticed.
"""
import os
import pathlib
import shlex
import subprocess

# Patterns of fnmatch; a directory ends in a slash.
LIES = [
    "journal/current/*.jnl",
    "ledgers/current/*.log",
    "ledgers/current/index/*.log",
    "journal/current/",
    "ledgers/current/",
    "ledgers/current/mark*",
]

# Those of files that take back space are shown by lives with garbage.
GARBAGE_FILES = ["bookie/compaction.c", "bookie/reclaim.c", "bookie/gc_purge.c"]

# Where few crashes can show it: these are tried.
FOCUS = {"what was replayed is not synced before the next file is begun": "none",
         "an add is answered before it is synced": "none", "a fence is answered before it is durable": "none",
         "rows are not flushed when there are no entries": "none", "the mark is taken after the freeze": "none",
         "the journal file that replay begins in is free": "names"}

MUTANTS = [
    ("an add is answered before it is synced", "bookie/journal.c",
     "    if (d->has_early)\n        finish_early", "    finish_early",
     "        journal_writes_put(w->is_early ? &early : &others, w);",
     "        journal_writes_put(&early, w);"),
    ("the mark before the entry log is synced", "bookie/log_writer.c",
     "    TRY(w->disk->ops->sync(w->file));\n", ""),
    ("the mark before the index is synced", "bookie/entry_index.c",
     "rocks_writer_write(&ix->write, ix->batch, true);", "rocks_writer_write(&ix->write, ix->batch, false);"),
    ("a journal file's name is not synced", "bookie/journal_file.c",
     "    TRY(err);\n    return ops->sync_dir(f->disk, f->dir);", "    return err;"),
    ("an entry log's name is not synced", "bookie/log_writer.c",
     "    if (!w->is_named)\n        TRY(w->disk->ops->sync_dir(w->disk, w->dir));\n", ""),
    ("the journal file that replay begins in is free", "bookie/journal.c",
     "    journal_files_free(&j->files, upto.file);", "    journal_files_free(&j->files, upto.file + 1);"),
    ("a fence is answered before it is durable", "bookie/fence.c",
     "        .done = recorded,\n", "        .done = recorded,\n        .is_early = true,\n"),
    ("rows are not flushed when there are no entries", "bookie/checkpoint.c",
     "    const enum err committed = c->items_n + c->rows_n > 0 ?",
     "    const enum err committed = c->items_n > 0 ?"),
    ("the mark is taken after the freeze", "bookie/checkpoint.c",
     "    sort_items(c);\n    c->is_frozen = true;",
     "    sort_items(c);\n    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);\n"
     "    for (unsigned j = 0; move_marks && j < s->n_journals; j++)\n"
     "        c->marks[j] = journal_mark(s->journals[j]);\n    c->is_frozen = true;"),
    ("what was replayed is not synced before the next file is begun", "bookie/journal.c",
     "    return sync_replayed(j);", "    (void)sync_replayed;\n    return ERR_OK;"),
    ("a torn record is believed", "bookie/journal_format.c",
     "    if (get_u32(at) != crc32c(at + 4, JOURNAL_RECORD - 4 + (size_t)length))\n"
     "        return ERR_CHECKSUM;\n", ""),
    ("the mark is replaced by removing the old one", "common/disk.c",
     "    enum err e = d->ops->remove(d, other);", "    enum err e = d->ops->remove(d, path);",
     "    e = write_synced(d, other, bytes, len);\n    if (!e)\n        e = d->ops->rename(d, other, path);",
     "    e = write_synced(d, path, bytes, len);"),
    ("what is read ahead replaces what was added again", "bookie/lookup.c",
     "    if (sh->thaws != r->thaws)\n        return;\n", "",
     "        if (!write_cache_find(&sh->caches[r->ledger->device->number], r->job.ledger,\n"
     "                              w->found[i].entry))\n", ""),
    ("a log goes although the last that was moved is not named in its new place", "bookie/compaction.c",
     "            TRY(take_ledger(j));\n    }\n    return flush(j);",
     "            TRY(take_ledger(j));\n    }\n    return ERR_OK;"),
    ("a log goes before what was moved is named in its new place", "bookie/reclaim.c",
     "    const enum err err = move_rest(o, c, &res);",
     "    TRY(remove_log(o, c, \"entry_log.compacted\"));\n"
     "    const enum err err = move_rest(o, c, &res);"),
]


def flags(*packages):
    out = subprocess.run(["pkg-config", "--cflags", "--libs", *packages], capture_output=True,
                         text=True, check=True)
    return shlex.split(out.stdout)


def plant(args, mutant, folder):
    """The program with one sick file in front of the libraries that have the sound one."""
    name, file, edits = mutant[0], mutant[1], mutant[2:]
    text = pathlib.Path(file).read_text()
    for sound, sick in zip(edits[::2], edits[1::2]):
        assert text.count(sound) == 1, f"{file} has changed: it cannot be planted"
        text = text.replace(sound, sick)
    source = pathlib.Path(folder) / pathlib.Path(file).name
    source.write_text(text)
    build = pathlib.Path(args.build)
    made = str(source.with_suffix(".o"))
    subprocess.run([args.cc, "-std=gnu17", "-g", "-O1", "-D_GNU_SOURCE", "-w", "-I.", "-isystem",
                    str(build / "gen"), "-c", "-o", made, str(source)], check=True)
    program = os.path.join(folder, "crashpoints")
    objects = sorted(str(o) for o in (build / "tests/crashpoints").glob("*.o"))
    libs = [str(build / f"lib{x}.a") for x in ("bookie", "ledger", "metadata", "proto", "common")]
    packages = flags("libevent", "libevent_pthreads", "libevent_openssl", "libprotobuf-c", "rocksdb",
                     "libzstd", "liblz4", "libisal", "json-c", "openssl", "zlib", "libcurl", "libnghttp2")
    subprocess.run([args.cc, "-pthread", "-o", program, *objects, made, *libs, *packages, "-lroaring",
                    "-lsnappy", "-lpcre2-8", "-lm"], check=True)
    return program
