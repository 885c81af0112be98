#!/usr/bin/env python3
"""run.py - every measurement, a row each, and a table at the end.

    bench/run.py --build build                      # all rows
    bench/run.py --only batched-2,lone --runs 5     # some, better

Systems that are compared take turns, --runs times, and their medians are divided: a machine that is
noisy is so for both.  Exit code 1: some row could not be measured (a goal that was not met is told, and
is no failure).
"""
import argparse
import json
import os
import signal
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bookie  # noqa: E402
import measure  # noqa: E402
import rows  # noqa: E402

rows.ROWS.update(bookie.ROWS)


def options():
    p = argparse.ArgumentParser(description="The rows are: " + ", ".join(rows.ROWS))
    p.add_argument("--build", default="build")
    p.add_argument("--only", default="", help="rows, with commas between them")
    p.add_argument("--skip", default="", help="rows that are left out")
    p.add_argument("--runs", type=int, default=5, help="of each system that is compared (5)")
    p.add_argument("--seconds", type=float, default=8, help="of a run (8)")
    p.add_argument("--warmup", type=float, default=2, help="seconds before that (2)")
    p.add_argument("--topics", type=int, default=10000)
    p.add_argument("--backlog-gib", type=float, default=10)
    p.add_argument("--acks", type=int, default=1000000)
    p.add_argument("--data", default=os.environ.get("TMPDIR", "/tmp"), help="on the disk to measure")
    p.add_argument("--quick", action="store_true", help="of the bookie's rows a little of each: do they work?")
    p.add_argument("--json", help="everything that was measured, into this file")
    o = p.parse_args()
    o.build, o.data = os.path.abspath(o.build), os.path.abspath(o.data)
    wanted = [r for r in o.only.split(",") if r] or list(rows.ROWS)
    for name in [*wanted, *[r for r in o.skip.split(",") if r]]:
        if name not in rows.ROWS:
            p.error(f"there is no row {name!r}; there are {', '.join(rows.ROWS)}")
    o.rows = [r for r in wanted if r not in o.skip.split(",")]
    return o


def run_row(name, o):
    """(figures, why not)"""
    function = rows.ROWS[name]
    print(f"{name}: {function.__doc__}", flush=True)
    began = time.monotonic()
    try:
        with measure.folder(o.data) as root:
            figures = list(function(o, root))
    except measure.Unavailable as e:
        print(f"    unavailable: {e}", flush=True)
        return [], f"unavailable: {e}"
    except Exception as e:
        traceback.print_exc()
        return [], f"FAILED: {str(e).splitlines()[0] if str(e) else type(e).__name__}"
    print(f"    {time.monotonic() - began:.0f} s", flush=True)
    return figures, None


def table(results):
    print(f"\n{'':44}{'LGM':>22}{'beside it':>18}{'ratio':>8}  goal")
    for name, (figures, why) in results.items():
        print(f"{name}: {rows.ROWS[name].__doc__}" + (f"  -- {why}" if why else ""))
        for f in figures:
            if f.ratio is None and not f.goal:
                print(f"  {f.what:42}  {f.ours}")
                continue
            ratio = f"{f.ratio:8.2f}" if f.ratio is not None else " " * 8
            met = {True: "met", False: "not met", None: ""}[f.met]
            print(f"  {f.what:42}{f.ours:>22}{f.beside:>18}{ratio}  {f.goal}  {met}")


def main():
    o = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # and cleans up
    results = {name: run_row(name, o) for name in o.rows}
    table(results)
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"runs": o.runs, "seconds": o.seconds, "measured": rows.DETAILS,
                       "why_not": {n: w for n, (_, w) in results.items() if w}}, f, indent=1)
    return any(why and why.startswith("FAILED") for _, why in results.values())


if __name__ == "__main__":
    sys.exit(main())
