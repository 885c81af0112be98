#!/usr/bin/env python3
"""bookie_tools_test.py - a bookie's directories, looked into and mended: what an operator does when
an index is lost, a log is damaged, or it is not known what is on a disk."""
import argparse
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import lgm  # noqa: E402
import lgm_cluster as cluster  # noqa: E402
from lgm_ledgers import OPEN, Reader, ledgers, registered  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
parser.add_argument("only", nargs="*")
OPTIONS = parser.parse_args()
BUILD = os.path.abspath(OPTIONS.build)
TOPIC = "persistent://public/default/"
EMPTY_KEY = bytes.fromhex("850bf1071c5e3d8c24235676f8816ae0cbe2f14f")  # of an empty password


def tool(bookie, verb, *words, check=0):
    """`lgm bookie VERB` on the directories of this bookie."""
    bookie.write_conf()
    done = subprocess.run([os.path.join(BUILD, "lgm"), "bookie", verb, "--conf", bookie.conf_file, *words],
                          capture_output=True, text=True, timeout=120 * lgm.SLOW, cwd=bookie.folder)
    assert check is None or done.returncode == check, f"{verb} {words}: {done}"
    return done


def current(bookie, *names):
    return os.path.join(bookie.conf["ledgerDirectories"], "current", *names)


def written(folder, bookies=3, count=2000, **conf):
    """A cluster with a topic that was written, all of it in the entry logs."""
    c = cluster.Cluster(BUILD, folder, bookies=bookies, brokers=1,
                        bookie_conf={"flushInterval": 100, "zkTimeout": 2000, **conf},
                        broker_conf={"managedLedgerMaxEntriesPerLedger": 300,
                                     "managedLedgerMinLedgerRolloverTimeMinutes": 0})
    c.start()
    log = os.path.join(folder, "verify.log")
    c.run("verify", "produce", TOPIC + "t", "--count", str(count), "--no-batching", "--rate", "2000", "--log", log)
    return c, log


def consume(c, log):
    done = c.run("verify", "consume", TOPIC + "t", "--log", log)
    assert lgm.verdict(done.stdout)["lost"] == 0, done.stdout


def all_entries(c, bookie):
    """{ledger: {entry: what the bookie answers}}"""
    reader = Reader(bookie)
    found = {}
    try:
        for ledger in ledgers(c):
            entries, at = found.setdefault(ledger.id, {}), 0
            while at == 0 or isinstance(entries[at - 1], tuple):
                entries.update(reader.read(ledger.id, range(at, at + 600)))
                at += 600
        return found
    finally:
        reader.close()


def same_entries(before, after):
    """What was there is there, byte for byte; what was not is not, or is not known."""
    present = 0
    for ledger, entries in before.items():
        for entry, copy in entries.items():
            now = after[ledger][entry]
            if copy is None:
                assert now is None or now == "status 101", (ledger, entry, now)
            else:
                assert now == copy, (ledger, entry, now, copy)
                present += 1
    assert present > 20, present
    return present


class Raw:
    """A client of the bookie protocol that does one thing at a time."""

    def __init__(self, bookie):
        self.reader = Reader(bookie)

    def ask(self, frame):
        self.reader.socket.sendall(struct.pack(">I", len(frame)) + frame)
        size, = struct.unpack(">I", self.reader.stream.read(4))
        return struct.unpack(">i", self.reader.stream.read(size)[4:8])[0]

    def fence(self, ledger):
        return self.ask(struct.pack(">Iqq", 2 << 24 | 2 << 16 | 1, ledger, -1) + EMPTY_KEY)

    def add(self, ledger, entry):
        body = struct.pack(">qqqq", ledger, entry, entry - 1, 10) + b"\0\0\0\0" + b"0123456789"
        return self.ask(struct.pack(">I", 2 << 24 | 1 << 16) + EMPTY_KEY + body)

    def close(self):
        self.reader.close()


# ---- a lost index ------------------------------------------------------------------------------------


def lose_index(bookie, what):
    index = current(bookie, "index")
    if what == "all":
        shutil.rmtree(index)
    else:
        gone = glob.glob(os.path.join(index, what))
        assert gone, os.listdir(index)
        for path in gone:
            os.remove(path)


def heals_itself(folder):
    c, log = written(folder)
    try:
        bookie = c.bookies[0]
        open_ledger = next(l.id for l in ledgers(c) if l.state == OPEN)
        raw = Raw(bookie)
        fresh = max(l.id for l in ledgers(c)) + 1000  # fenced before it had an entry, and unknown
        assert raw.add(fresh, 0) == 0 and raw.fence(fresh) == 0 and raw.add(fresh, 1) == 104
        raw.close()
        before = all_entries(c, bookie)
        for what in ("all", "CURRENT", "MANIFEST*"):
            bookie.kill()
            lose_index(bookie, what)
            bookie.start()
            bookie.wait_for_event("entry_index.rebuilt")
            assert "entry_index.lost" in bookie.output()
            same_entries(before, all_entries(c, bookie))
            raw = Raw(bookie)
            assert raw.add(fresh, 1) == 104, "it was fenced"
            assert raw.add(open_ledger, 10000) == 104, "nobody knows that it was not"
            raw.close()
        bookie.kill()
        bookie.start()
        assert "entry_index.lost" not in bookie.output()
        for b in c.bookies[1:]:
            b.kill()
            lose_index(b, "all")
            b.start()
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


def killed_while_it_heals(folder):
    c, log = written(folder, count=1000)
    try:
        bookie = c.bookies[0]
        before = all_entries(c, bookie)
        bookie.kill()
        lose_index(bookie, "all")
        for event in ("entry_index.lost", "entry_index.rebuilt", "journal.replayed"):
            bookie.launch()
            bookie.wait_for_event(event)
            bookie.kill()
        bookie.start()
        same_entries(before, all_entries(c, bookie))
        bookie.stop()
        assert not any("index.new" in d for d in os.listdir(current(bookie))), os.listdir(current(bookie))
        tool(bookie, "verify-logs")
        bookie.start()
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


def one_lost_index_of_two(folder):
    """Several ledger directories and journals: the ledgers of the other one are left alone."""
    c = cluster.Cluster(BUILD, folder, bookies=1, brokers=1,
                        bookie_conf={"flushInterval": 100, "zkTimeout": 2000},
                        broker_conf={"managedLedgerMaxEntriesPerLedger": 50,
                                     "managedLedgerMinLedgerRolloverTimeMinutes": 0})
    bookie, = c.bookies
    dirs = [os.path.join(bookie.folder, "data", name) for name in ("l1", "l2", "j1", "j2")]
    bookie.conf.update(ledgerDirectories=",".join(dirs[:2]), journalDirectories=",".join(dirs[2:]))
    c.start()
    try:
        log = os.path.join(folder, "verify.log")
        c.run("verify", "produce", TOPIC + "t", "--count", "1500", "--rate", "2000", "--no-batching", "--log", log)
        before = all_entries(c, bookie)
        for lost in ((0,), (1,), (0, 1)):
            bookie.kill()
            for i in lost:
                shutil.rmtree(os.path.join(dirs[i], "current", "index"))
            if len(lost) == 1:
                tool(bookie, "rebuild-index")
            bookie.start()
            same_entries(before, all_entries(c, bookie))
            bookie.stop()
            rows = [row["id"] for row in told(bookie, "list-ledgers")]
            assert len(rows) == len(set(rows)), f"a ledger in two directories: {rows}"
            tool(bookie, "verify-logs")
            tool(bookie, "verify-journal")
            bookie.start()
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


def rebuilt_by_hand(folder):
    c, log = written(folder, lgmRebuildLostIndex="false")
    try:
        bookie = c.bookies[0]
        busy = tool(bookie, "rebuild-index", check=1)
        assert "stop it first" in busy.stderr, busy
        before = all_entries(c, bookie)
        bookie.kill()
        assert "not lost" in tool(bookie, "rebuild-index").stdout
        lose_index(bookie, "all")
        bookie.refuses_to_start("entry_index.lost")
        done = tool(bookie, "rebuild-index")
        assert "entry_index.rebuilt" in done.stderr and "limbo" not in done.stdout, done
        bookie.start()
        same_entries(before, all_entries(c, bookie))
        bookie.kill()
        report = json.loads(tool(bookie, "rebuild-index", "--force", "--json").stdout)
        assert report["damages"] == 0 and report["limbo"] == 0 and report["records"] > 20, report
        bookie.start()
        same_entries(before, all_entries(c, bookie))
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


# ---- looking ------------------------------------------------------------------------------------------


def told(bookie, verb, *words, check=0):
    """What it says, as objects."""
    return [json.loads(line) for line in tool(bookie, verb, *words, "--json", check=check).stdout.splitlines()]


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))


def settled(bookie):
    """A clean stop: all is in the entry logs."""
    bookie.stop()


def tells_what_is_there(folder):
    c, _ = written(folder, count=1000)
    try:
        bookie = c.bookies[0]
        before = all_entries(c, bookie)
        assert "stop it first" in tool(bookie, "list-ledgers", check=1).stderr
        assert told(bookie, "lastmark")[0]["stored"]  # it may run
        assert any(log["bytes"] > 64 for log in told(bookie, "list-logs"))
        settled(bookie)
        rows = {row["id"]: row for row in told(bookie, "list-ledgers")}
        for ledger, entries in before.items():
            here = [e for e, copy in entries.items() if copy is not None]
            if ledger not in rows:  # it had just been made, and nothing was written to it
                assert not here, ledger
                continue
            assert rows[ledger]["entries"] == len(here), (ledger, rows[ledger])
            assert rows[ledger]["last"] == max(here, default=-1), (ledger, rows[ledger])
            assert rows[ledger]["masterKey"] == EMPTY_KEY.hex()
        ledger = max(rows, key=lambda i: rows[i]["entries"])
        places = told(bookie, "list-entries", str(ledger))
        assert [p["entry"] for p in places] == sorted(
            e for e, copy in before[ledger].items() if copy is not None)
        place, entry = told(bookie, "dump-entry", str(ledger), "0")
        assert place["offset"] == places[0]["offset"] and entry["entry"] == 0
        assert bytes.fromhex(entry["content"])[36:] == before[ledger][0][1]
        text = tool(bookie, "dump-entry", str(ledger), "0").stdout
        assert f"entry ledger={ledger} entry=0 lac=-1" in text, text
        tool(bookie, "dump-entry", str(ledger), "99999", check=1)
        tool(bookie, "dump-entry", "no", "0", check=2)
        records = [r for r in told(bookie, "dump-log", str(place["log"])) if r["what"] == "record"]
        assert {"offset": place["offset"], "ledger": ledger, "entry": 0}.items() <= next(
            r for r in records if r["offset"] == place["offset"]).items()
        assert any(r["what"] == "add" for r in told(bookie, "dump-journal"))
        bookie.start()
    finally:
        c.__exit__(None, None, None)


def verifies(folder):
    c, _ = written(folder, bookies=1, count=1000)
    try:
        bookie = c.bookies[0]
        settled(bookie)
        logs, = told(bookie, "verify-logs")
        assert logs["damages"] == 0 and logs["unreadable"] == 0 and logs["entries"] > 900, logs
        journal, = told(bookie, "verify-journal")
        assert journal["state"] == "whole", journal
        ledger = next(r["id"] for r in told(bookie, "list-ledgers") if r["entries"] > 5)
        place = told(bookie, "list-entries", str(ledger))[3]
        log = current(bookie, f"{place['log']:016x}.log")
        flip(log, place["offset"] + 50)
        wrong = told(bookie, "verify-logs", check=1)
        assert {"what": "damage", "path": log, "offset": place["offset"]}.items() <= wrong[0].items(), wrong
        assert {"what": "unreadable", "ledger": ledger, "entry": place["entry"]}.items() <= wrong[1].items(), wrong
        assert wrong[2]["damages"] == wrong[2]["unreadable"] == 1, wrong
        assert any(r["what"] == "damage" for r in told(bookie, "dump-log", str(place["log"]), check=1))
        flip(log, place["offset"] + 50)
        os.rename(log, log + ".aside")
        wrong = told(bookie, "verify-logs", check=1)
        assert wrong[-1]["unreadable"] > 100 and wrong[-1]["damages"] == 0, wrong[-1]
        os.rename(log + ".aside", log)
        tool(bookie, "verify-logs")
    finally:
        c.__exit__(None, None, None)


def a_damaged_journal_is_found(folder):
    c, _ = written(folder, bookies=1, count=300, flushInterval=3600000)
    try:
        bookie = c.bookies[0]
        bookie.kill()
        adds = [r for r in told(bookie, "dump-journal") if r["what"] == "add"]
        first, middle = adds[0], adds[len(adds) // 2]
        assert middle["group"] > first["group"]
        path = os.path.join(bookie.conf["journalDirectories"], "current", f"{first['file']:016x}.jnl")
        flip(path, first["offset"] + 60)
        done = tool(bookie, "verify-journal", check=1)
        assert "journal.corrupted" in done.stderr and path in done.stderr, done
        bookie.refuses_to_start("journal.corrupted")
        flip(path, first["offset"] + 60)
        tool(bookie, "verify-journal")
        bookie.start()
    finally:
        c.__exit__(None, None, None)


# ---- mending ------------------------------------------------------------------------------------------


def what_is_damaged_comes_back(folder):
    """A damaged record and a lost index: until the others have given it back, it is not known."""
    c, log = written(folder)
    try:
        bookie = c.bookies[0]
        before = all_entries(c, bookie)
        settled(bookie)
        ledger = next(r["id"] for r in told(bookie, "list-ledgers") if r["entries"] > 5)
        place = told(bookie, "list-entries", str(ledger))[2]
        path = current(bookie, f"{place['log']:016x}.log")
        flip(path, place["offset"] + 50)
        lose_index(bookie, "all")
        done = tool(bookie, "rebuild-index", check=1)
        assert f"path={path} offset={place['offset']} " in done.stderr and "limbo" in done.stdout, done
        bookie.start()
        bookie.wait_for_event("integrity.restored", 60)
        after = all_entries(c, bookie)
        assert after[ledger][place["entry"]] == before[ledger][place["entry"]]
        same_entries(before, after)
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


def cookies(folder):
    c, _ = written(folder, bookies=1, count=100)
    try:
        bookie, name = c.bookies[0], "bookie-0"
        here = told(bookie, "cookie", "show")
        assert len(here) == 2 and all(k["bookieId"] == name for k in here), here
        there, = told(bookie, "cookie", "show", name)
        assert there["incarnation"] == here[0]["incarnation"] and there["instanceId"], there
        assert "is registered" in tool(bookie, "cookie", "delete", name, "--force", check=1).stderr
        bookie.stop()
        tool(bookie, "cookie", "delete", name, "--force")
        bookie.refuses_to_start("bookie.cookie_refused")
        file = os.path.join(bookie.conf["journalDirectories"], "current", "VERSION")
        tool(bookie, "cookie", "create", "another", file, check=1)
        tool(bookie, "cookie", "create", name, file)
        tool(bookie, "cookie", "create", name, file, check=1)
        bookie.start()
        tool(bookie, "cookie", "nonsense", check=2)
    finally:
        c.__exit__(None, None, None)


def simpletest(folder):
    c, _ = written(folder, count=100)
    try:
        names = [l.id for l in ledgers(c)]
        steps = told(c.bookies[0], "simpletest", "3", "3", "2", "500")
        assert [s["name"] for s in steps] == ["find bookies", "create", "write", "close", "read", "delete"], steps
        assert all(s["result"] == "ok" for s in steps), steps
        assert [l.id for l in ledgers(c)] == names, "it leaves nothing"
        c.bookies[1].kill()
        c.bookies[2].kill()
        lgm.wait_until(lambda: len(registered(c) - {"readonly"}) == 1, 30, "they are gone")
        assert told(c.bookies[0], "simpletest", "3", check=1)[-1]["result"] != "ok"
        tool(c.bookies[0], "simpletest", "1", "2", check=2)
    finally:
        c.__exit__(None, None, None)


def get(process, path, method="GET", body=None, status=200):
    got, text = process.http(path, method, body)
    assert got == status, f"{method} {path}: {got} {text}"
    return json.loads(text) if text.startswith(("{", "[")) else text


def http_tells(folder):
    c, _ = written(folder, count=300, lgmMetadataPassword="")
    try:
        bookie, name = c.bookies[0], "bookie-0"
        assert get(bookie, "/api/v1/bookie/sanity") == {"passed": True, "readOnly": False}
        assert get(bookie, "/api/v1/bookie/sanity/")["passed"]
        conf = get(bookie, "/api/v1/config/server_config")
        assert conf["bookieId"] == name and conf["flushInterval"] == "100", conf
        assert conf["lgmMetadataPassword"] == "*****" and "gcLogPath" not in conf
        lgm.wait_until(lambda: "Id 0(" not in str(get(bookie, "/api/v1/bookie/last_log_mark")), 30, "a mark")
        (mark, at), = get(bookie, "/api/v1/bookie/last_log_mark").items()
        assert mark.startswith("LastLogMark: Journal Id ") and at.startswith("Pos - "), (mark, at)
        metrics = get(bookie, "/metrics")
        for name_ in ("bookkeeper_server_FORCE_LEDGER_REQUEST", "bookie_ledger_num_dirs 1",
                      "bookkeeper_server_ADD_ENTRY_BLOCKED 0", "bookie_journal_JOURNAL_MEMORY_MAX "):
            assert name_ in metrics, name_
        files = get(bookie, "/api/v1/bookie/list_disk_file")
        assert ".jnl" in files["journal files"] and ".log" in files["entrylog files"], files
        assert list(get(bookie, "/api/v1/bookie/list_disk_file?file_type=index")) == ["index files"]
        info = lgm.wait_until(lambda: (i := get(bookie, "/api/v1/bookie/cluster_info"))["auditorElected"] and i,
                              30, "an auditor")
        assert info["totalBookiesCount"] == info["writableBookiesCount"] == 3, info
        assert info["readonlyBookiesCount"] == info["unavailableBookiesCount"] == 0, info
        assert info["ledgerReplicationEnabled"] and not info["clusterUnderReplicated"], info
        assert get(bookie, "/api/v1/autorecovery/who_is_auditor") == "Auditor: " + info["auditorId"]
        assert info["auditorId"] in {f"bookie-{i}" for i in range(3)}, info
        get(bookie, "/api/v1/autorecovery/list_under_replicated_ledger", status=404)
        delay = "/api/v1/autorecovery/lost_bookie_recovery_delay"
        assert get(bookie, delay) == "lostBookieRecoveryDelay value: 0"
        get(bookie, delay, "PUT", {"delay_seconds": -1}, 400)
        assert get(bookie, delay, "PUT", {"delay_seconds": 7}) == "Success set lostBookieRecoveryDelay to 7"
        assert get(bookie, delay) == "lostBookieRecoveryDelay value: 7"
        ids = {str(l.id) for l in ledgers(c)}
        assert set(get(bookie, "/api/v1/ledger/list/")) == ids
        shown = get(bookie, "/api/v1/ledger/list?print_metadata=true&page=1")
        one = min(ids)
        assert shown[one]["ensembleSize"] == 3 and name in shown[one]["allEnsembles"]["0"], shown[one]
        assert get(bookie, "/api/v1/ledger/list?page=2") == {}
        get(bookie, "/api/v1/ledger/list?page=0", status=400)
        assert get(bookie, f"/api/v1/ledger/metadata?ledger_id={one}")[one]["state"] in ("OPEN", "CLOSED")
        get(bookie, "/api/v1/ledger/metadata?ledger_id=99", status=404)
        get(bookie, "/api/v1/ledger/metadata", status=400)
    finally:
        c.__exit__(None, None, None)


def http_reads_and_deletes_ledgers(folder):
    c, _ = written(folder, count=700, lgmMetadataPassword="")
    try:
        bookie, path = c.bookies[0], "/api/v1/ledger/read?ledger_id="
        for wrong in ("", "x", "-1", "1&start_entry_id=x", "1&end_entry_id=-2", "1&page=x",
                      "1&start_entry_id=5&end_entry_id=4", "1&start_entry_id=1500&end_entry_id=1600&page=1"):
            get(bookie, path + wrong, status=400)
        get(bookie, path + "99999", status=404)
        closed = [l for l in ledgers(c) if l.state == 3 and l.last >= 200]
        assert closed, ledgers(c)
        one = closed[0]
        reader = Reader(bookie)
        kept = reader.read(one.id, range(one.last + 1))
        reader.close()
        shown = get(bookie, f"{path}{one.id}")
        assert set(shown) == {str(i) for i in range(one.last + 1)}, list(shown)[:5]
        for entry, (_, payload) in kept.items():
            assert shown[str(entry)] == "".join(chr(b) if b < 0x80 else "\ufffd" for b in payload), entry
        assert set(get(bookie, f"{path}{one.id}&start_entry_id=150&end_entry_id=152")) == {"150", "151", "152"}
        page = get(bookie, f"{path}{one.id}&page=1&start_entry_id={one.last}")
        assert page == {"Entries for page: ": "1", str(one.last): shown[str(one.last)]}, page
        assert get(bookie, f"{path}{one.id}&page=2") == {"Entries for page: ": "2"}
        opened = [l for l in ledgers(c) if l.state == 1]
        for l in opened:  # what is confirmed of them, and nobody is fenced
            get(bookie, f"{path}{l.id}")
        assert {l.id: l.state for l in ledgers(c)}[opened[0].id] == 1
        c.bookies[1].kill()  # another copy is read
        assert get(bookie, f"{path}{one.id}") == shown
        get(bookie, "/api/v1/ledger/delete", "DELETE", status=400)
        get(bookie, "/api/v1/ledger/delete?ledger_id=99999", "DELETE", status=404)
        assert get(bookie, f"/api/v1/ledger/delete?ledger_id={one.id}", "DELETE") == f'"Deleted ledger: {one.id}"'
        assert one.id not in {l.id for l in ledgers(c)}
        get(bookie, f"{path}{one.id}", status=404)
        get(bookie, f"/api/v1/ledger/delete?ledger_id={one.id}", "DELETE", status=404)
        bookie.stop()
    finally:
        c.__exit__(None, None, None)


def http_tells_space_and_takes_settings(folder):
    c, _ = written(folder, count=50)
    try:
        bookie = c.bookies[0]
        shown = get(bookie, "/api/v1/bookie/list_bookie_info")
        assert set(shown) == {"bookie-0", "bookie-1", "bookie-2", "ClusterInfo: "}, shown
        space = os.statvfs(folder)
        total = space.f_blocks * space.f_frsize
        assert all(f"Total: {total}(" in shown[f"bookie-{i}"] for i in range(3)), (shown, total)
        sizes = re.fullmatch(r"\{Free: (\d+)\(([\d.]+)([KMGT]B)\), Total: (\d+)\(([\d.]+)([KMGT]B)\)\}",
                             shown["ClusterInfo: "])
        assert int(sizes[4]) == 3 * total, shown
        unit = 1000 ** ("KMGT".index(sizes[6][0]) + 1)
        assert 0 <= 3 * total / unit - float(sizes[5]) < 0.0011, shown
        assert re.fullmatch(r": \{Free: .*, Total: .*\},", shown["bookie-1"]), shown
        c.bookies[2].kill()
        lgm.wait_until(lambda: "bookie-2" not in get(bookie, "/api/v1/bookie/list_bookie_info"), 30, "it is gone")
        conf = "/api/v1/config/server_config"
        assert get(bookie, conf, "PUT", {"compactionRateByEntries": "77", "gcWaitTime": 600}) == \
            "Success set server config."
        assert get(bookie, conf)["compactionRateByEntries"] == "77" and get(bookie, conf)["gcWaitTime"] == "600"
        bookie.wait_for_event("config.changed key=compactionRateByEntries value=77")
        for wrong in ({"gcWaitTime": "1"}, {"gcWaitTime": "700", "bookiePort": "1"}, {"nonsense": 1},
                      {"minorCompactionThreshold": 7}, [], "x"):
            get(bookie, conf, "PUT", wrong, 400)
        assert get(bookie, conf)["gcWaitTime"] == "600", "all or none"
        rounds = get(bookie, "/api/v1/bookie/gc/state")["rounds"]
        lgm.wait_until(lambda: get(bookie, "/api/v1/bookie/gc/state")["rounds"] > rounds + 1, 30,
                       "rounds come as often as it says now")
        suspend, resume = "/api/v1/bookie/gc/suspend_compaction", "/api/v1/bookie/gc/resume_compaction"
        assert get(bookie, suspend, "PUT", {"suspendMajor": "true", "suspendMinor": True}) == \
            '"Suspend majorGC on BookieServer: bookie-0, Suspend minorGC on BookieServer: bookie-0"'
        assert get(bookie, suspend) == {"isMajorGcSuspended": "true", "isMinorGcSuspended": "true"}
        assert get(bookie, resume, "PUT", {"resumeMajor": "false", "resumeMinor": "true"}) == \
            '"Resume minorGC on BookieServer: bookie-0"'
        assert get(bookie, suspend) == {"isMajorGcSuspended": "true", "isMinorGcSuspended": "false"}
        assert get(bookie, "/api/v1/bookie/gc", "PUT") == '"Triggered GC on BookieServer: bookie-0"'
        compact = "/api/v1/bookie/entry_location_compact"
        where = current(bookie, "index")
        get(bookie, compact, "PUT", status=400)
        get(bookie, compact, "PUT", {"entryLocationRocksDBCompact": True, "entryLocations": where + ",/x"}, 400)
        assert get(bookie, compact, "PUT", {}) == "Not trigger Entry Location RocksDB compact."
        for body, text in (({}, " compact on bookie:bookie-0"), ({"entryLocations": where}, f": {where} compact on bookie:bookie-0.")):
            assert get(bookie, compact, "PUT", {"entryLocationRocksDBCompact": "true", **body}) == \
                f'"Triggered entry Location RocksDB{text}"'
            lgm.wait_until(lambda: get(bookie, compact) == {where: False}, 30, "it is over")
        assert get(bookie, "/api/v1/bookie/expand_storage", "PUT") == "Success expand storage"
        bookie.stop()
    finally:
        c.__exit__(None, None, None)


def the_log_says_more_when_asked(folder):
    c, _ = written(folder, bookies=1, count=10)
    try:
        for process in (c.bookies[0], c.brokers[0]):
            assert get(process, "/api/v1/log/level") == {"level": "info"}
            for wrong in ({"level": "loud"}, {"level": 1}, {}, []):
                get(process, "/api/v1/log/level", "PUT", wrong, 400)
            assert get(process, "/api/v1/log/level", "PUT", {"level": "error"}) == {"level": "error"}
            process.wait_for_event("log.level_changed from=info to=error")
            before = process.output()
            if process is c.bookies[0]:
                get(process, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": True})
                get(process, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": False})
                assert "bookie.set_readonly" not in process.output()[len(before):]
            get(process, "/api/v1/log/level", "PUT", {"level": "info"})
            if process is c.bookies[0]:
                get(process, "/api/v1/bookie/state/readonly", "PUT", {"readOnly": True})
                process.wait_for_event("bookie.set_readonly")
            assert "flight.dumped thread=" in get(process, "/api/v1/flight")
    finally:
        c.__exit__(None, None, None)


def help_tells_all(folder):
    done = subprocess.run([os.path.join(BUILD, "lgm"), "bookie", "--help"], capture_output=True, text=True)
    for verb in ("rebuild-index", "list-ledgers", "verify-logs", "cookie", "simpletest", "decommission"):
        assert verb in done.stdout, verb
    bookie = cluster.Bookie(BUILD, folder, "b1", "rocksdb:" + os.path.join(folder, "m"))
    assert "no directory of a bookie" in tool(bookie, "list-logs", check=1).stderr
    assert not os.path.exists(bookie.conf["ledgerDirectories"])


CASES = [heals_itself, killed_while_it_heals, one_lost_index_of_two, rebuilt_by_hand, tells_what_is_there,
         verifies, a_damaged_journal_is_found, what_is_damaged_comes_back, cookies, simpletest, http_tells,
         http_reads_and_deletes_ledgers, http_tells_space_and_takes_settings,
         the_log_says_more_when_asked, help_tells_all]

if __name__ == "__main__":
    cases = lgm.Cases()
    for case in CASES:
        if not OPTIONS.only or case.__name__ in OPTIONS.only:
            cases.run(case.__name__.replace("_", " "), case)
    cases.end()
    sys.exit(cases.failed != 0)
