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

MUTANTS = [
    ("an add is answered before it is synced", "bookie/journal.c",
     "    TRY(ops->sync(j->current.file));\n    const uint64_t synced",
     "    finish_early(j, group);\n    TRY(ops->sync(j->current.file));\n    const uint64_t synced",
     "        writes_put(w->is_early ? &early : &others, w);",
     "        writes_put(&early, w);"),
    ("the mark before the entry log is synced", "bookie/checkpoint.c",
     "    TRY(entry_log_sync(s->log));\n", ""),
    ("the mark before the index is synced", "bookie/entry_index.c",
     "rocksdb_writeoptions_set_sync(ix->write, 1);", "rocksdb_writeoptions_set_sync(ix->write, 0);"),
    ("a journal file's name is not synced", "bookie/journal_file.c",
     "    TRY(err);\n    return ops->sync_dir(f->disk, f->dir);", "    return err;"),
    ("an entry log's name is not synced", "bookie/entry_log.c",
     "    if (!l->is_named)\n        TRY(l->disk->ops->sync_dir(l->disk, l->dir));\n", ""),
    ("the journal is recycled before the mark has moved", "bookie/checkpoint.c",
     "    journal_trim(c->storage->journal, c->stored);", "",
     "    if (!err)\n        err = move_mark(c);",
     "    journal_trim(c->storage->journal, c->mark);\n    if (!err)\n        err = move_mark(c);"),
    ("a fence is answered before it is durable", "bookie/fence.c",
     "    const enum err err = journal_append(s->journal, &r->write);\n    if (!err)\n        return;",
     "    r->write.is_early = true;\n"
     "    const enum err err = journal_append(s->journal, &r->write);\n    if (!err)\n        return;"),
    ("rows are not flushed when there are no entries", "bookie/checkpoint.c",
     "    const enum err committed = c->items_n + c->rows_n > 0 ?",
     "    const enum err committed = c->items_n > 0 ?"),
    ("the mark is taken after the freeze", "bookie/checkpoint.c",
     "    sort_items(c);\n    c->is_frozen = true;",
     "    sort_items(c);\n    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);\n"
     "    if (move_mark)\n        c->mark = journal_mark(c->storage->journal);\n    c->is_frozen = true;"),
    ("a torn record is believed", "bookie/journal_format.c",
     "    if (get_u32(at) != crc32c(at + 4, JOURNAL_RECORD - 4 + (size_t)length))\n"
     "        return ERR_CHECKSUM;\n", ""),
    ("the mark is replaced by removing the old one", "common/disk.c",
     "    enum err e = d->ops->remove(d, other);", "    enum err e = d->ops->remove(d, path);",
     "    e = write_synced(d, other, bytes, len);\n    if (!e)\n        e = d->ops->rename(d, other, path);",
     "    e = write_synced(d, path, bytes, len);"),
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
