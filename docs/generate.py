#!/usr/bin/env python3
"""generate.py - the pages that come from the tables: docs/configuration.md and docs/errors.md.

With --check nothing is written, and it is an error when a page is not what the tables say, or when
an event that the sources log has no row in docs/operating.md, or a row has no event.
"""
import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SOURCES = "common proto metadata ledger bookie client broker cli".split()
NOT_EVENTS = {"pulsar.repl", "pulsar.dedup"}  # what begins names of subscriptions


def configuration(build):
    pages = ["# Configuration\n\nA setting comes from the configuration file (`key=value`, `#` comments), then from the "
             "environment (`LGM_key`), then from `--set key=value`; each over the last. An empty value means the "
             "default.\n\nKeys are those of Pulsar's `broker.conf` and BookKeeper's `bookkeeper.conf`, whose stock files "
             "start unchanged but for the metadata address. A key of theirs that is no setting here is listed below "
             "with the reason; one that nobody knows is a warning with the nearest name; an impossible value stops the "
             "start with file, line and reason.\n"]
    for program in ("lgm-broker", "lgm-bookie"):
        table = subprocess.run([f"{build}/{program}", "--describe-config=markdown"], check=True,
                               capture_output=True, text=True).stdout
        pages.append(f"\n## {program}\n\n{table}")
    return "".join(pages)


def errors():
    text = (HERE.parent / "common" / "err.def").read_text()
    rows = re.findall(r'^X\((\w+),\s*(\w+),\s*(\d+),\s*(\d+),\s*"([^"]*)"\)', text, re.M)
    table = "\n".join(f"| {s} | {c} | {p} | {b} | {t} |" for s, c, p, b, t in rows)
    return ("# Errors\n\nFrom `common/err.def`: the name is what log events show as `err=`. RETRY may pass by itself, "
            "CALLER is the request's fault, FATAL ends the object.\n\n"
            "| name | class | Pulsar ServerError | bookie status | in words |\n|---|---|---|---|---|\n"
            f"{table}\n")


def events():
    """Names that are logged anywhere: every literal of their shape."""
    found = set()
    for folder in SOURCES:
        for path in (HERE.parent / folder).rglob("*.c"):
            found |= set(re.findall(r'"([a-z_]+\.[a-z_]+)"', path.read_text()))
    return found - NOT_EVENTS


def check_events():
    section = (HERE / "operating.md").read_text().split("## Log events", 1)[1]
    rows = set()
    for first in re.findall(r"^\| (`[^|]*) \|", section, re.M):
        rows |= set(re.findall(r"`([a-z_]+\.[a-z_]+)`", first))
    for name in sorted(events() - rows):
        print(f"docs/operating.md has no row for the event {name}")
    for name in sorted(rows - events()):
        print(f"docs/operating.md has a row for {name}, which nothing logs")
    return rows != events()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = check_events() if args.check else 0
    for name, text in (("configuration.md", configuration(args.build)), ("errors.md", errors())):
        path = HERE / name
        if args.check and (not path.exists() or path.read_text() != text):
            print(f"docs/{name} is not what the tables say: run `make docs`")
            stale = 1
        elif not args.check:
            path.write_text(text)
    return stale


sys.exit(main())
