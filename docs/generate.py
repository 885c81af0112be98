#!/usr/bin/env python3
"""generate.py - the pages that come from the tables: docs/configuration.md and docs/errors.md.

With --check nothing is written, and a page that is not what the tables say is an error.
"""
import argparse
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def configuration(build):
    pages = ["# Configuration\n\nFrom `broker/config.def` and `bookie/config.def`. A setting comes from the "
             "configuration file (`key=value`), then from the environment (`LGM_key`), then from "
             "`--set key=value`; each over the last.\n"]
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = 0
    for name, text in (("configuration.md", configuration(args.build)), ("errors.md", errors())):
        path = HERE / name
        if args.check and (not path.exists() or path.read_text() != text):
            print(f"docs/{name} is not what the tables say: run `make docs`")
            stale = 1
        elif not args.check:
            path.write_text(text)
    return stale


sys.exit(main())
