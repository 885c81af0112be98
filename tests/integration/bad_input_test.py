#!/usr/bin/env python3
"""bad_input_test.py - what must not hurt: garbage, full disks, wrong folders, ports in use."""
import argparse
import os
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build


def closed_by_peer(s):
    s.settimeout(10)
    try:
        while s.recv(4096):
            pass
    except ConnectionResetError:
        pass


def garbage_closes_that_connection_only(folder):
    server = lgm.Standalone(BUILD, folder).start()
    log = os.path.join(folder, "run.log")
    busy = server.spawn("verify", "produce", "t", "--count", "20000", "--log", log)
    garbage = [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 0xFFFFFFFF), struct.pack(">II", 4, 0xFFFFFFFF),
               struct.pack(">II", 8, 4) + b"\xff" * 4, struct.pack(">I", 64 * 1024 * 1024) + b"x" * 100,
               struct.pack(">IIB", 5, 1, 0x08), os.urandom(4096)]
    for bytes_ in garbage:
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.sendall(bytes_)
            s.shutdown(socket.SHUT_WR)
            closed_by_peer(s)
    assert busy.wait(60 * lgm.SLOW) == 0
    got = lgm.verdict(server.run("verify", "consume", "t", "--log", log).stdout)
    assert got["lost"] == 0 and got["checked"] == 20000
    server.stop()


def refuses(command, *texts, env=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30 * lgm.SLOW, env=env)
    assert done.returncode not in (0, -6, -11), f"{command}: {done.returncode} {done.stderr}"
    said = done.stdout + done.stderr
    for text in texts:
        assert text in said, f"{text!r} is not in {said}"


def wrong_starts_say_what_and_where(folder):
    server = lgm.Standalone(BUILD, folder).start()
    second = lgm.Standalone(BUILD, folder)
    refuses(second.command(), os.path.join(server.data, "metadata"))  # the folder is in use
    other = os.path.join(folder, "other")
    os.mkdir(other)
    third = lgm.Standalone(BUILD, other)
    third.port = server.port
    refuses(third.command(), str(server.port))  # the port is
    server.stop()
    fourth = lgm.Standalone(BUILD, other, args=["--set", "managedLedgerDefaultAckQuorum=0"])
    refuses(fourth.command(), "managedLedgerDefaultAckQuorum")
    fifth = lgm.Standalone(BUILD, other, args=["--set", "brokerServicePort=many"])
    refuses(fifth.command(), "brokerServicePort")
    sixth = lgm.Standalone(BUILD, folder)
    sixth.data = "/proc/nowhere"
    refuses(sixth.command(), "/proc/nowhere")


def another_cluster_s_folder_is_refused(folder):
    first = lgm.Standalone(BUILD, folder).start()
    first.run("produce", "t", "-m", "x")
    first.stop()
    other = os.path.join(folder, "other")
    os.mkdir(other)
    second = lgm.Standalone(BUILD, other).start()
    second.stop()
    shutil.rmtree(os.path.join(second.data, "bookie-0"))
    shutil.copytree(os.path.join(first.data, "bookie-0"), os.path.join(second.data, "bookie-0"))
    refuses(second.command(), "bookie-0")
    shutil.rmtree(os.path.join(first.data, "bookie-0", "ledgers"))
    refuses(first.command(), "ledgers")  # a bookie that lost its data does not start as if empty


def fewer_bookies_than_before_are_refused(folder):
    server = lgm.Standalone(BUILD, folder, bookies=2).start()
    server.stop()
    server.bookies = 1
    refuses(server.command(), "bookie-1")


def errors_reach_the_user(folder):
    server = lgm.Standalone(BUILD, folder).start()

    def fails(text, *words):
        done = server.run(*words, check=False)
        assert done.returncode == 1 and text.lower() in done.stderr.lower(), (words, done)
    fails("namespace", "produce", "persistent://nobody/nowhere/t", "-m", "x")
    fails("name", "produce", "persistent://a/b", "-m", "x")
    fails("supported yet", "consume", "t", "-s", "s", "-t", "Key_Shared", "-n", "1")
    server.run("produce", "t", "-m", "one")
    first = server.spawn("consume", "t", "-s", "s", "-p", "Earliest", "-n", "2")
    assert first.stdout.readline() == "one\n"
    fails("consumer", "consume", "t", "-s", "s", "-n", "1")
    server.run("produce", "t", "-m", "two")
    assert first.communicate(timeout=30)[0] == "two\n"
    server.stop()


def fill(folder):
    """Takes every free byte; gives the file that holds them."""
    ballast = os.path.join(folder, "ballast")
    with open(ballast, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    return ballast


def a_full_disk_fails_writes_and_loses_nothing(folder):
    small = os.path.join(folder, "small")
    os.mkdir(small)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", small],
                                           capture_output=True).returncode != 0:
        raise lgm.Skip("needs a small file system: mounting one is not allowed here")
    try:
        args = ["--bookie-set", "journalMaxSizeMB=8", "--bookie-set", "diskCheckInterval=100",
                "--bookie-set", "dbStorage_writeCacheMaxSizeMb=8"]
        server = lgm.Standalone(BUILD, small, args=args).start()
        log = os.path.join(folder, "run.log")
        producer = server.spawn("verify", "produce", "t", "--count", "200000", "--size", "1024",
                                "--log", log)
        lgm.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 100000, 60, "it writes")
        ballast = fill(small)

        def stalled():
            before = os.path.getsize(log)
            try:
                producer.wait(1)
            except subprocess.TimeoutExpired:
                pass
            return os.path.getsize(log) == before
        lgm.wait_until(stalled, 60, "the full disk stops it")
        assert producer.poll() is None, f"the producer gave up: {producer.communicate()}"
        subprocess.run(["mount", "-o", "remount,size=1g", small], check=True)
        os.remove(ballast)
        if server.process.poll() is not None:  # a journal that cannot be written ends a bookie
            assert server.process.returncode > 0, f"a signal: {server.output()[-3000:]}"
            server.start()
        out, err = producer.communicate(timeout=120 * lgm.SLOW)
        assert producer.returncode == 0, (out, err)
        got = lgm.verdict(server.run("verify", "consume", "t", "--log", log, check=False).stdout)
        assert got["lost"] == got["duplicated"] == got["reordered"] == 0, got
        assert got["checked"] == 200000, got
        server.stop()
    finally:
        subprocess.run(["umount", "-l", small])


cases = lgm.Cases()
for case in (garbage_closes_that_connection_only, wrong_starts_say_what_and_where,
             another_cluster_s_folder_is_refused, fewer_bookies_than_before_are_refused,
             errors_reach_the_user, a_full_disk_fails_writes_and_loses_nothing):
    cases.run(case.__name__, case)
cases.end()
