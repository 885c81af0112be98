#!/usr/bin/env python3
"""first_light_test.py - what a new user does first: start, publish, consume, stop, start again."""
import argparse
import json
import os
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build


def consume(server, topic, sub, *more, **kwargs):
    return server.run("consume", topic, "-s", sub, "-p", "Earliest", *more, **kwargs).stdout


def publish_and_consume(folder):
    server = lgm.Standalone(BUILD, folder).start()
    server.run("produce", "t", "-m", "hello", "-m", "world")
    assert consume(server, "t", "s", "-n", "2") == "hello\nworld\n"
    server.stop()


def goes_on_after_a_stop(folder):
    server = lgm.Standalone(BUILD, folder).start()
    server.run("produce", "t", "-m", "one", "-m", "two", "-m", "three", "--no-batching")
    assert consume(server, "t", "s", "-n", "1") == "one\n"
    server.stop()
    server.start()
    server.run("produce", "t", "-m", "four")
    assert consume(server, "t", "s", "-n", "3") == "two\nthree\nfour\n"
    server.stop()


def goes_on_after_kill(folder):
    server = lgm.Standalone(BUILD, folder, bookies=3).start()
    server.run("produce", "t", "--no-batching", "--lines", "-",
               input="".join(f"{i}\n" for i in range(5000)))
    assert consume(server, "t", "s", "-n", "2500").split() == [str(i) for i in range(2500)]
    server.kill()
    server.start()
    assert consume(server, "t", "s", "-n", "2500").split() == [str(i) for i in range(2500, 5000)]
    server.stop()


def json_with_keys_and_properties(folder):
    server = lgm.Standalone(BUILD, folder).start()
    server.run("produce", "persistent://public/default/t", "-m", "x", "-k", "k1", "-p", "a=1", "-p",
               "b=two", "--no-batching")
    got = json.loads(consume(server, "t", "s", "-n", "1", "--format", "json"))
    assert (got["payload"], got["key"], got["properties"]) == ("x", "k1", {"a": "1", "b": "two"})
    assert got["topic"].endswith("t") and got["redeliveries"] == 0
    server.stop()


def every_compression_and_large_files(folder):
    server = lgm.Standalone(BUILD, folder).start()
    text = os.path.join(folder, "text")
    with open(text, "w") as f:
        f.write("all work and no play\n" * 20000)
    for how in ("none", "lz4", "zlib", "zstd", "snappy"):
        server.run("produce", how, "-f", text, "-c", how)
        assert consume(server, how, "s", "-n", "1", "--format", "raw") == open(text).read(), how
    noise = os.path.join(folder, "noise")
    with open(noise, "wb") as f:
        f.write(os.urandom(20 * 1024 * 1024))
    server.run("produce", "large", "-f", noise)
    raw = subprocess.run([server.lgm, "consume", "large", "-s", "s", "-p", "Earliest", "-n", "1",
                          "--format", "raw", "--url", server.url], capture_output=True, timeout=120)
    assert raw.stdout == open(noise, "rb").read()
    server.stop()


def one_topic_of_many(folder):
    server = lgm.Standalone(BUILD, folder).start()
    for i in range(50):
        server.run("produce", f"topic-{i}", "-m", f"message {i}")
    server.kill()
    server.start()
    for i in range(50):
        assert consume(server, f"topic-{i}", "s", "-n", "1") == f"message {i}\n"
    server.stop()


def a_topic_grows(folder):
    """Both sides go on with the partitions that a topic gets meanwhile, from their beginning."""
    server = lgm.Standalone(BUILD, folder).start()

    def partitions(method, n):
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.web_port}/admin/v2/persistent/public/default/wide/partitions",
            data=str(n).encode(), method=method, headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=30)
    partitions("PUT", 2)
    reader = server.spawn("consume", "wide", "-s", "s", "-p", "Earliest", "--format", "json", "-n", "300",
                          "--partitions-every", "0.2")
    writer = server.spawn("produce", "wide", "--lines", "-", "--partitions-every", "0.2", "--no-batching",
                          stdin=subprocess.PIPE)
    writer.stdin.write("".join(f"{i}\n" for i in range(100)))
    writer.stdin.flush()
    got = [json.loads(reader.stdout.readline()) for _ in range(100)]
    partitions("POST", 4)
    metrics = f"http://127.0.0.1:{server.web_port}/metrics"

    def four_are_open():
        with urllib.request.urlopen(metrics, timeout=10) as r:
            return "pulsar_broker_producers_count" in (text := r.read().decode()) and all(
                f" {n}" in next(line for line in text.splitlines() if line.startswith(name))
                for name, n in (("pulsar_broker_producers_count", 4), ("pulsar_broker_consumers_count", 4)))
    lgm.wait_until(four_are_open, 30, "a producer and a consumer of each partition")
    out, error = writer.communicate("".join(f"{i}\n" for i in range(100, 300)), timeout=60 * lgm.SLOW)
    assert writer.returncode == 0, error
    got += [json.loads(line) for line in reader.communicate(timeout=60 * lgm.SLOW)[0].splitlines()]
    assert sorted(int(m["payload"]) for m in got) == list(range(300))
    assert len({m["topic"] for m in got}) == 4
    server.stop()


def http_answers(folder):
    server = lgm.Standalone(BUILD, folder).start()
    server.run("produce", "t", "-m", "hello")

    def get(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.web_port}{path}", timeout=10) as r:
            return r.read().decode()
    assert get("/status.html").strip() == "OK"
    assert "pulsar_" in get("/metrics")
    assert get("/admin/v2/brokers/health").strip() == "ok"
    found = json.loads(get("/lookup/v2/topic/persistent/public/default/t"))
    assert found["brokerUrl"] == server.url and "brokerUrlTls" in found
    server.stop()


def verify_judges(folder):
    server = lgm.Standalone(BUILD, folder).start()
    log = os.path.join(folder, "run.log")
    server.run("verify", "produce", "t", "--count", "20000", "--log", log)
    got = lgm.verdict(server.run("verify", "consume", "t", "--log", log).stdout)
    assert got == dict(lost=0, duplicated=0, reordered=0, resent=0, redelivered=0, checked=20000)
    # A record that the log claims and nobody stored is lost: the judge must say so.
    with open(log) as f:
        lines = f.readlines()
    with open(log, "w") as f:
        f.writelines([lines[0].replace("20000", "20001"), *lines[1:-1], "A 20000 1:1:-1\n", lines[-1]])
    again = server.run("verify", "consume", "t", "--log", log, "--idle", "1", check=False)
    assert again.returncode == 1 and lgm.verdict(again.stdout)["lost"] > 0
    server.stop()


def usage(folder):
    del folder
    program = os.path.join(BUILD, "lgm")

    def run(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, timeout=20)
    assert run("--help").returncode == 0 and run("--version").stdout.startswith("lgm ")
    assert run().returncode == 2 and run("nonsense").returncode == 2
    for command in (["standalone"], ["produce"], ["consume"], ["verify"], ["verify", "produce"],
                    ["verify", "consume"], ["perf"], ["perf", "produce"], ["perf", "consume"],
                    ["perf", "read"]):
        shown = run(*command, "--help")
        assert shown.returncode == 0 and "Example:" in shown.stdout, command
        assert run(*command, "--nonsense").returncode == 2, command
    nobody = run("produce", "t", "-m", "x", "--url", "http://localhost")
    assert nobody.returncode == 2 and "service url" in nobody.stderr


cases = lgm.Cases()
for case in (publish_and_consume, goes_on_after_a_stop, goes_on_after_kill,
             json_with_keys_and_properties, every_compression_and_large_files, one_topic_of_many,
             a_topic_grows, http_answers, verify_judges, usage):
    cases.run(case.__name__, case)
cases.end()
