#!/usr/bin/env python3
"""tidy.py - the shape of the code, kept by CI: sizes, arrows, banned calls, first lines."""
import pathlib
import re
import sys

FILE_MAX, FUNCTION_MAX, HEADER_MAX, COLUMNS = 800, 70, 250, 100

# Who may include whom (DESIGN, section 3). A folder may always include itself; tests may include all.
LAYERS = {
    "common": set(),
    "proto": {"common"},
    "metadata": {"common", "proto"},
    "ledger": {"common", "proto", "metadata"},
    "bookie": {"common", "proto", "metadata", "ledger"},
    "client": {"common", "proto"},
    "broker": {"common", "proto", "metadata", "ledger", "client"},
    "cli": {"common", "proto", "metadata", "ledger", "client", "broker", "bookie"},
    "bench": {"common", "proto", "metadata", "ledger", "client"},
}
# The broker's rooms: managed_ledger <- topic, dispatch <- session; those beside them are told
# apart from main.c through headers that name what they need.
ROOMS = {
    "managed_ledger": set(),
    "dispatch": {"managed_ledger"},
    "topic": {"managed_ledger", "dispatch", "cluster", "policy", "auth"},
    "session": {"topic", "dispatch", "managed_ledger", "cluster", "policy", "auth"},
    "cluster": set(),
    "policy": set(),
    "auth": set(),
    "replication": {"managed_ledger", "topic", "cluster", "policy"},
    "admin": {"topic", "dispatch", "managed_ledger", "cluster", "policy", "auth"},
}
BANNED = {
    "strcpy": "snprintf", "strcat": "snprintf", "sprintf": "snprintf", "atoi": "parse_u64",
    "atol": "parse_i64", "strtok": "a reader", "malloc": "mem_alloc", "calloc": "mem_alloc",
    "realloc": "mem_resize", "free": "mem_free", "strdup": "mem_string", "time": "loop_now",
    "gettimeofday": "loop_now", "rand": "rng_next", "random": "rng_next", "sleep": "a timer",
    "usleep": "a timer",
}
# The few places that wrap what is banned elsewhere, or must give back what a library allocated.
MAY_BREAK = {
    ("common/mem.c", "calloc"), ("common/mem.c", "realloc"), ("common/mem.c", "free"),
    ("common/buf.c", "malloc"), ("common/buf.c", "free"),
    ("common/slab_pool.c", "malloc"), ("common/slab_pool.c", "free"),
}


def strip(text):
    def keep_lines(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', keep_lines, text, flags=re.S)


def functions(lines):
    """(first line, length) of each function: braces alone in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line.startswith("}") and start:
            yield start, number - start + 1
            start = None


def arrows(path, number, target):
    folder, other = path.parts[0], target.split("/")[0]
    if folder not in LAYERS:
        return
    if other in LAYERS and other != folder and other not in LAYERS[folder]:
        yield number, f"{folder}/ may not include {other}/"
    if folder == other == "broker":
        room, wanted = path.parts[1], target.split("/")[1]
        if room in ROOMS and wanted in ROOMS and wanted != room and wanted not in ROOMS[room]:
            yield number, f"broker/{room}/ may not include broker/{wanted}/"


def problems(path):
    name, text = path.as_posix(), path.read_text()
    lines = text.split("\n")
    limit = HEADER_MAX if path.suffix == ".h" else FILE_MAX
    if len(lines) > limit:
        yield 1, f"{len(lines)} lines, limit {limit}: split it by what changes together"
    if path.suffix in (".h", ".def") and not re.match(rf"/\* {re.escape(path.name)} - \S", text):
        yield 1, f"a header opens with: /* {path.name} - what it is for"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS and path.suffix != ".def":
            yield number, f"longer than {COLUMNS} columns"
        if include := re.match(r'#include "([\w./-]+)"', line):
            yield from arrows(path, number, include.group(1))
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield number, "do it, or put it in a note"
    for start, length in functions(lines):
        if length > FUNCTION_MAX:
            yield start, f"function of {length} lines, limit {FUNCTION_MAX}"
    if path.parts[0] == "tests":
        return
    for number, line in enumerate(strip(text).split("\n"), 1):
        for call in re.findall(r"(?<![\w.>])([a-z]\w*)\(", line):
            if call in BANNED and (name, call) not in MAY_BREAK:
                yield number, f"{call}() is banned, use {BANNED[call]}"


def main():
    bad = 0
    for folder in [*LAYERS, "tests"]:
        for path in sorted(pathlib.Path(folder).rglob("*.*")):
            if path.suffix not in (".c", ".h", ".def"):
                continue
            for line, message in problems(path):
                print(f"{path}:{line}: {message}")
                bad += 1
    for folder in [f for f in LAYERS if pathlib.Path(f).is_dir()]:
        for room in [pathlib.Path(folder), *[p for p in pathlib.Path(folder).iterdir() if p.is_dir()]]:
            if any(room.glob("*.[ch]")) and not (room / "README.md").exists():
                print(f"{room}: a folder has a README.md: its files in reading order, a line each")
                bad += 1
    return bad != 0


sys.exit(main())
