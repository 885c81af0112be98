#!/usr/bin/env python3
"""generate.py - the pages that come from the tables: docs/configuration.md, errors.md, admin.md.

With --check nothing is written, and it is an error when a page is not what the tables say, or when
an event that the sources log has no row in docs/operating.md, or a row has no event, or an alarm of a bookie is
not in docs/operating-a-bookie.md.
"""
import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SOURCES = "common proto metadata ledger bookie client broker cli".split()
# Names of subscriptions and producers, of files of cgroups, of figures of the allocator.
NOT_EVENTS = {"pulsar.repl", "pulsar.dedup", "lgm.skip", "memory.max", "memory.limit_in_bytes", "stats.allocated",
              "stats.resident"}


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


def rows_of(path, columns):
    """The X rows of a table; strings without their quotes, names as they are."""
    text = (HERE.parent / path).read_text()
    cell = r'("(?:[^"\\\\]|\\\\.)*"|\w+)'
    found = re.findall(r"^X\(" + r",\s*".join([cell] * columns) + r"\)", text, re.M)
    return [[c.strip('"') for c in row] for row in found]


def admin():
    routes = rows_of("broker/admin/routes.def", 4) + rows_of("broker/admin/jobs.def", 4)
    policies = rows_of("broker/admin/policies.def", 4)
    verbs = rows_of("cli/admin.def", 8)
    page = ["# Administration over HTTP\n\nFrom `broker/admin/*.def` and `cli/admin.def`. The broker answers Pulsar's "
            "admin REST API v2 on `webServicePort`: JSON, 204 for what answers nothing, `{\"reason\": ...}` with every "
            "refusal, 307 to the owner of a topic that another broker serves. What is not there yet is refused (405, "
            "501) with the reason, never taken in silence.\n\n## Routes\n\n| method | path | authorized as |\n|---|---|---|\n"]
    for method, path, _, action in routes:
        shown = re.sub(r"\{(\w+)\}", r"\1", path).replace("{}", "{…}")
        page.append(f"| {method} | `{shown}` | {action.removeprefix('ACTION_').lower()} |\n")
    page.append("\n## What a namespace may be told\n\n`GET`, `POST` and `DELETE /admin/v2/namespaces/{tenant}/{namespace}/"
                "{policy}`. Fields of the stored JSON that nobody here knows survive every change.\n\n"
                "| policy | | |\n|---|---|---|\n")
    for path, _, check, what in policies:
        page.append(f"| {path} | {'501' if check == 'REFUSED' else 'works'} | {what} |\n")
    page.append("\n## `lgm admin`\n\nThe same from the command line, in pulsar-admin's words; `lgm admin --help` tells the "
                "options. Exit codes: 0 done, 1 refused (the broker's reason is on standard error), 2 wrong usage.\n\n"
                "It asks any broker's HTTP port: `--admin-url URL`, else the environment's `LGM_ADMIN_URL`, else "
                "`http://127.0.0.1:8080`. (Commands that speak Pulsar's binary protocol, as `lgm produce`: `--url URL`, "
                "else `LGM_URL`, else `pulsar://127.0.0.1:6650`.) A time without a unit is in seconds, a size in bytes.\n\n"
                "| verb | does | over |\n|---|---|---|\n")
    for group, verb, arguments, _, method, path, _, text in verbs:
        page.append(f"| `{group} {verb} {arguments}`".rstrip("` ") + f"` | {text} | {method} `{path}` |\n")
    return "".join(page)


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


def alarms():
    """Events that a bookie may log at WARN or ERROR: the literals of each such call."""
    found = set()
    for path in sorted((HERE.parent / "bookie").glob("*.c")):
        for call in re.findall(r"log_event\((.*?)\);", path.read_text(), re.S):
            if re.match(r"[^\"]*LOG_(WARN|ERROR)", call):
                first = re.match(r'[^"]*("[a-z_]+\.[a-z_]+"(?:\s*:\s*"[a-z_]+\.[a-z_]+")?)', call)
                found |= set(re.findall(r'"([a-z_]+\.[a-z_]+)"', first.group(1)) if first else [])
    return found


def check_alarms():
    """Each has a row in docs/operating-a-bookie.md, and each metric there is one that is rendered."""
    page = (HERE / "operating-a-bookie.md").read_text()
    sources = "".join(p.read_text() for f in ("bookie", "common", "ledger")
                      for p in (HERE.parent / f).iterdir() if p.suffix in (".c", ".def", ".h"))
    missing = sorted(a for a in alarms() if f"`{a}`" not in page)
    strange = sorted(m for m in set(re.findall(
        r"`((?:bookie|bookkeeper_server|auditor|replication_worker|lgm|process)_\w+)`", page)) if m not in sources)
    for name in missing:
        print(f"docs/operating-a-bookie.md does not say what to do about {name}")
    for name in strange:
        print(f"docs/operating-a-bookie.md names the metric {name}, which nobody renders")
    return bool(missing or strange)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = (check_events() | check_alarms()) if args.check else 0
    for name, text in (("configuration.md", configuration(args.build)), ("errors.md", errors()),
                       ("admin.md", admin())):
        path = HERE / name
        if args.check and (not path.exists() or path.read_text() != text):
            print(f"docs/{name} is not what the tables say: run `make docs`")
            stale = 1
        elif not args.check:
            path.write_text(text)
    return stale


sys.exit(main())
