#!/usr/bin/env python3
"""perf_test.py - `lgm perf`: it counts what there was, ends when it is told to, and its times are true."""
import argparse
import json
import os
import signal
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build


def last(text):
    return json.loads(text.splitlines()[-1])


def with_server(case):
    def run(folder):
        server = lgm.Standalone(BUILD, folder).start()
        try:
            case(server, folder)
            server.stop()
        finally:
            if server.process.poll() is None:
                server.kill()
    run.__name__ = case.__name__
    return run


def consuming(server, *words):
    """A consumer that is ready."""
    process = server.spawn("perf", "consume", *words)
    assert "ready" in process.stdout.readline()
    return process


@with_server
def all_topics_producers_and_subscriptions(server, _):
    consumer = consuming(server, "many", "-t", "3", "-ss", "a,b", "-m", "1200")
    told = last(server.run("perf", "produce", "many", "-t", "3", "-n", "2", "-r", "0", "-m", "600",
                           "-bu", "10").stdout)
    assert (told["messages"], told["producers"], told["failed"], told["unanswered"]) == (600, 6, 0, 0)
    assert told["bytes"] == 600 * 1024
    out, error = consumer.communicate(timeout=60 * lgm.SLOW)
    assert consumer.returncode == 0, error
    got = last(out)
    assert got["messages"] == 1200 and got["latencySince"] == "due", got
    for i in range(3):
        assert server.run("perf", "consume", f"many-{i}", "-ss", "c", "-sp", "Earliest", "-m", "200",
                          "-st", "Shared").returncode == 0


@with_server
def a_rate_is_kept(server, _):
    """What is due is sent, late or not: a machine that has no time changes the times, not the count."""
    told = last(server.run("perf", "produce", "steady", "-r", "500", "-time", "2", "-w", "0.5").stdout)
    assert 1200 <= told["messagesEver"] <= 1251, told
    assert 500 < told["messages"] < told["messagesEver"], told
    assert 1.9 < told["seconds"] < 2.5 * lgm.SLOW, told


@with_server
def waiting_counts_from_when_it_was_due(server, _):
    """The server stands still for a second: messages were due all the time."""
    producer = server.spawn("perf", "produce", "still", "-r", "200", "-m", "600", "-o", "1", "-bd")
    assert "ready" in producer.stdout.readline() and "msg/s" in producer.stdout.readline()
    server.process.send_signal(signal.SIGSTOP)
    lgm.wait_until(lambda: "outstanding 1," in producer.stdout.readline(), 10, "nothing is answered")
    lgm.wait_until(lambda: producer.stdout.readline().startswith("0.0 msg/s"), 10, "a second of it")
    server.process.send_signal(signal.SIGCONT)
    out, error = producer.communicate(timeout=60 * lgm.SLOW)
    assert producer.returncode == 0, error
    times = last(out)["latencyMs"]
    assert times["max"] > 900 and times["95"] > 500, times


@with_server
def a_signal_ends_it_with_a_summary(server, folder):
    path = os.path.join(folder, "summary")
    consumer = consuming(server, "ended", "-i", "0.1")
    producer = server.spawn("perf", "produce", "ended", "-r", "1000", "-i", "0.1", "--json", path)
    for _ in range(5):
        assert producer.stdout.readline()
    producer.send_signal(signal.SIGINT)
    out, error = producer.communicate(timeout=60 * lgm.SLOW)
    assert producer.returncode == 0, error
    told = last(out)
    with open(path) as f:
        assert json.load(f) == told
    assert told["messagesEver"] > 0 and told["unanswered"] == 0, told
    seen = [0]

    def all_there():
        line = consumer.stdout.readline()
        seen[0] += round(float(line.split(" ")[0]) * 0.1) if "msg/s" in line else 0
        return line.startswith("0.0 msg/s") and seen[0] > 0
    lgm.wait_until(all_there, 20, "the consumer has all")
    consumer.send_signal(signal.SIGTERM)
    out, error = consumer.communicate(timeout=60 * lgm.SLOW)
    assert consumer.returncode == 0, error
    assert last(out)["messages"] == told["messagesEver"]


@with_server
def payloads_without_a_stamp_are_as_old_as_they_were_published(server, _):
    server.run("perf", "produce", "small", "-s", "8", "-m", "10", "-r", "0")
    got = last(server.run("perf", "consume", "small", "-sp", "Earliest", "-m", "10").stdout)
    assert got["latencySince"] == "published" and got["messages"] == 10, got
    assert 0 < got["latencyMs"]["max"] < 60000 * lgm.SLOW, got


@with_server
def readers_read_from_anywhere(server, _):
    server.run("perf", "produce", "read", "-m", "50", "-r", "0")
    assert last(server.run("perf", "read", "read", "-n", "50").stdout)["messages"] == 50
    reader = server.spawn("perf", "read", "read", "-m", "latest", "-n", "5")
    assert "ready" in reader.stdout.readline()
    server.run("perf", "produce", "read", "-m", "5", "-r", "0")
    out, error = reader.communicate(timeout=60 * lgm.SLOW)
    assert reader.returncode == 0 and last(out)["messages"] == 5, error


@with_server
def what_is_wrong_is_said(server, _):
    def wrong(*words):
        done = server.run("perf", *words, check=False)
        assert done.returncode == 2 and done.stderr, words
        return done.stderr
    assert "TOPIC" in wrong("produce")
    assert "-zz" in wrong("produce", "t", "-zz")

    assert "-z is" in wrong("produce", "t", "-z", "RAR")
    assert "-st is" in wrong("consume", "t", "-st", "Sharde")
    assert "-m is" in wrong("read", "t", "-m", "1:x")
    assert "'rate'" in wrong("produce", "t", "-r", "-1")
    assert "no option" in wrong("consume", "t", "-s", "5")
    wrong("nothing")


@with_server
def partitions_are_all_used(server, _):
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.web_port}/admin/v2/persistent/public/default/parts/partitions",
        data=b"3", method="PUT", headers={"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30)
    consumer = consuming(server, "parts", "-m", "300", "-sp", "Earliest")
    sent = last(server.run("perf", "produce", "parts", "-r", "0", "-m", "300", "-bd").stdout)
    out, error = consumer.communicate(timeout=60 * lgm.SLOW)
    assert consumer.returncode == 0, error
    assert sent["messagesEver"] == last(out)["messagesEver"] == 300, (sent, out)
    for i in range(3):  # each has its turn
        assert server.run("perf", "consume", f"parts-partition-{i}", "-ss", "look", "-sp", "Earliest", "-m",
                          "100").returncode == 0


cases = lgm.Cases()
for case in (all_topics_producers_and_subscriptions, a_rate_is_kept,
             waiting_counts_from_when_it_was_due, a_signal_ends_it_with_a_summary,
             payloads_without_a_stamp_are_as_old_as_they_were_published,
             readers_read_from_anywhere, partitions_are_all_used, what_is_wrong_is_said):
    cases.run(case.__name__, case)
cases.end()
