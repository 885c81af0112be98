#!/usr/bin/env python3
"""crash.py - `lgm standalone` under `lgm verify`, killed with kill -9 at random moments.

A producer and a consumer run through all rounds; the server is killed and started again.  At the
end the verdict must be lost=0 duplicated=0 reordered=0, and after every restart publishing must
have gone on within --progress seconds.  With --consumers N the subscription is Shared: N consumers
come and go, others are killed with what they hold, and every record must come at least once.
"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "lib"))
import lgm  # noqa: E402


def lines_of(path):
    with open(path, "rb") as f:
        return f.read().count(b"\n")


def wait_for_progress(log, seconds):
    before = lines_of(log)
    began = time.monotonic()
    lgm.wait_until(lambda: lines_of(log) > before + 1, seconds, "publishing goes on")
    return time.monotonic() - began


def run(args, folder):
    rng = random.Random(args.seed)
    server = lgm.Standalone(args.build, folder, bookies=args.bookies).start()
    log = os.path.join(folder, "verify.log")
    topic = "crash-test"
    producer = server.spawn("verify", "produce", topic, "--count", "1000000000", "--log", log,
                            "--rate", str(args.rate), *args.produce)
    lgm.wait_until(lambda: os.path.exists(log) and lines_of(log) > 10, 30, "first acknowledgements")
    shared = ["-t", "Shared", "--consumers", str(args.consumers), "--churn", "200"] if args.consumers else []
    consumer = server.spawn("verify", "consume", topic, "--log", log, "--idle", "60", *shared)
    takers = [lgm.Taker(topic, [server.port]) for _ in range(2 if shared else 0)]
    gone_on, ready = [], []
    for round_ in range(1, args.rounds + 1):
        time.sleep(rng.uniform(0.2, 2.0))
        for taker in takers:
            taker.kill()
        server.kill()
        time.sleep(rng.choice([0, 0, rng.uniform(0, 1)]))
        server.start()
        ready.append(server.ready_s)
        gone_on.append(wait_for_progress(log, args.progress))
        print(f"round {round_}: ready after {ready[-1]:.2f} s, publishing {gone_on[-1]:.2f} s later, "
              f"{lines_of(log)} lines logged", flush=True)
    for taker in takers:
        taker.end()
    producer.send_signal(signal.SIGINT)
    out, err = producer.communicate(timeout=60 * lgm.SLOW)
    assert producer.returncode == 0, f"producer: {producer.returncode} {out} {err}"
    print(out.strip())
    out, err = consumer.communicate(timeout=120 * lgm.SLOW)
    print(out.strip(), err.strip())
    verdict = lgm.verdict(out)
    assert consumer.returncode == 0, f"consumer: {consumer.returncode} {out} {err}"
    assert verdict["lost"] == verdict["duplicated"] == 0 and (shared or verdict["reordered"] == 0)
    assert verdict["checked"] > 0
    server.stop()
    print(f"{args.rounds} kills: ready after at most {max(ready):.2f} s, publishing at most "
          f"{max(gone_on):.2f} s later")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--rate", type=int, default=5000)
    parser.add_argument("--bookies", type=int, default=1)
    parser.add_argument("--consumers", type=int, default=0, help="of a Shared subscription")
    parser.add_argument("--progress", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("produce", nargs="*", help="more options for `lgm verify produce`, after --")
    args = parser.parse_args()
    print(f"seed {args.seed}")
    cases = lgm.Cases()
    many = f", {args.consumers} consumers" if args.consumers else ""
    cases.run(f"kill -9, {args.rounds} rounds, {args.bookies} bookies{many}", lambda f: run(args, f))
    cases.end()


if __name__ == "__main__":
    main()
