#!/usr/bin/env python3
"""python_client.py - what Apache's Python client can do with us, feature by feature.

Started by run.py, which says there how the two talk; the names of the features are those of the
other clients' programs.
"""
import argparse
import hashlib
import json
import os
import random
import re
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request

import pulsar

parser = argparse.ArgumentParser()
parser.add_argument("--url")
parser.add_argument("--web-url")
parser.add_argument("--tls-url")
parser.add_argument("--tls-web-url")
parser.add_argument("--tls-trust", help="a certificate")
parser.add_argument("--restarts", action="store_true", help="the server may be restarted")
parser.add_argument("--unacked-limit", type=int)
parser.add_argument("--only", default="", help="features whose name holds this")
parser.add_argument("--list", action="store_true")
parser.add_argument("--messages", type=int, default=int(os.environ.get("LGM_TEST_MESSAGES", "1000000")),
                    help="of 1 KiB, in the large comparison")
ARGS = parser.parse_args()
EARLIEST, LATEST = pulsar.InitialPosition.Earliest, pulsar.InitialPosition.Latest
SHARED, EXCLUSIVE = pulsar.ConsumerType.Shared, pulsar.ConsumerType.Exclusive
SECONDS_PER_FEATURE = 120
FEATURES, NEED_RESTARTS = {}, set()


def feature(function=None, restarts=False):
    def add(f):
        FEATURES[f.__name__] = f
        if restarts:
            NEED_RESTARTS.add(f.__name__)
        return f
    return add(function) if function else add


class World:
    """What a feature works with: clients that are closed after it, topics that nobody else uses."""

    def __init__(self, name):
        self.name, self.clients = "python-" + name.replace("_", "-"), []
        self.client = self.another_client()

    def another_client(self, url=None, **options):
        self.clients.append(pulsar.Client(url or ARGS.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
                                          **{"operation_timeout_seconds": 30, **options}))
        return self.clients[-1]

    def close(self):
        for client in self.clients:
            try:
                client.close()
            except pulsar.AlreadyClosed:
                pass

    def topic(self, suffix="t"):
        return f"{self.name}-{suffix}"

    def path(self, suffix="t"):
        return "/persistent/public/default/" + self.topic(suffix)

    def namespace(self, suffix="ns"):
        name = "public/" + self.topic(suffix)
        admin("PUT", "/namespaces/" + name)
        return name

    def producer(self, topic, by=None, **options):
        """Each message in an entry of its own, and at once, unless it is told otherwise."""
        return (by or self.client).create_producer(
            topic, **{"batching_enabled": False, "block_if_queue_full": True, **options})

    def consumer(self, topic, sub="sub", by=None, **options):
        return (by or self.client).subscribe(topic, sub, **{"initial_position": EARLIEST, **options})

    def shared(self, topic, **options):
        return self.consumer(topic, consumer_type=SHARED, **options)

    def reader(self, topic, start, **options):
        return self.client.create_reader(topic, start, **options)

    def send_batch(self, topic, payloads):
        """All of them in one entry."""
        producer = self.producer(topic, batching_enabled=True, batching_max_messages=len(payloads),
                                 batching_max_publish_delay_ms=10000)
        send_all(producer, payloads)
        producer.close()


def admin(method, path, body=None):
    request = urllib.request.Request(f"{ARGS.web_url}/admin/v2{path}", method=method,
                                     data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    return json.loads(text) if text else None


def restart(*settings):
    """kill -9, and ready again, with these settings besides its own."""
    print("? restart", *settings, flush=True)
    assert sys.stdin.readline().strip() == "done"


def soon(condition, what):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"not within 60 s: {what}"
        time.sleep(0.02)


def numbered(start, end):
    return [f"message {i}".encode() for i in range(start, end)]


def number(message):
    return int(re.sub(rb"\D", b"", message.data()))


def send_all(producer, payloads, **kwargs):
    """Asynchronously, and waits for every acknowledgement; gives the message ids in order."""
    ids, done, failed = [], threading.Event(), []
    payloads = list(payloads)

    def sent(result, message_id):
        (ids if result == pulsar.Result.Ok else failed).append(message_id)
        if len(ids) + len(failed) == len(payloads):
            done.set()
    for payload in payloads:
        producer.send_async(payload, sent, **kwargs)
    producer.flush()
    assert done.wait(60) and not failed, f"{len(ids)} of {len(payloads)} sent, {len(failed)} failed"
    return ids


def receive(consumer, n, ack=True, seconds=20):
    got = []
    for i in range(n):
        try:
            message = consumer.receive(timeout_millis=seconds * 1000)
        except pulsar.Timeout:
            raise AssertionError(f"only {i} of {n} messages") from None
        got.append(message)
        if ack:
            consumer.acknowledge(message)
    return got


def read(reader, n):
    return [reader.read_next(timeout_millis=20000) for _ in range(n)]


def drain(consumers, n, ack=True):
    """n messages, from whichever of the consumers has some: a list for each of them."""
    got, end = [[] for _ in consumers], time.monotonic() + 40
    while sum(map(len, got)) < n:
        assert time.monotonic() < end, f"{[len(g) for g in got]} of {n}"
        for consumer, mine in zip(consumers, got):
            try:
                message = consumer.receive(timeout_millis=10)
            except pulsar.Timeout:
                continue
            mine.append(message)
            if ack:
                consumer.acknowledge(message)
    return got


def same(got, wanted):
    got = [m.data() for m in got]
    wanted = list(wanted)
    assert got == wanted, f"{len(got)} messages, not the {len(wanted)} wanted: {got[:5]} {wanted[:5]}"


def same_in_any_order(got, wanted):
    assert sorted(m.data() for m in got) == sorted(wanted), f"{len(got)} messages"


def nothing_more(*consumers):
    for consumer in consumers:
        try:
            take = consumer.receive if hasattr(consumer, "receive") else consumer.read_next
            message = take(timeout_millis=400)
        except pulsar.Timeout:
            continue
        raise AssertionError(f"one more: {message.data()[:40]}")


def refused(error, function):
    began = time.monotonic()
    try:
        function()
    except error as e:
        assert time.monotonic() - began < 20, "answered by a timeout, not by the broker"
        return str(e)
    except Exception as e:
        raise AssertionError(f"{type(e).__name__} {e} instead of {error.__name__}") from e
    raise AssertionError(f"no {error.__name__}")


# ---- producing ----

@feature
def produce_and_consume(w):
    consumer, producer = w.consumer(w.topic()), w.producer(w.topic())
    dice = random.Random(1)
    wanted = [dice.randbytes(i * 37 % 4099) for i in range(500)]
    ids = [producer.send(p) for p in wanted]
    got = receive(consumer, 500)
    same(got, wanted)
    assert [str(m.message_id()) for m in got] == [str(i) for i in ids]
    assert producer.last_sequence_id() == 499
    nothing_more(consumer)


@feature
def async_without_batching(w):
    consumer = w.consumer(w.topic())
    send_all(w.producer(w.topic()), numbered(0, 3000))
    same(receive(consumer, 3000), numbered(0, 3000))


@feature
def async_with_batching(w):
    producer = w.producer(w.topic(), batching_enabled=True, batching_max_publish_delay_ms=5)
    send_all(producer, numbered(0, 20000))
    got = receive(w.consumer(w.topic()), 20000)
    same(got, numbered(0, 20000))
    assert any(m.message_id().batch_index() > 0 for m in got), "there were batches"


def compressed(w, kind):
    for batching in (False, True):
        topic = w.topic(str(batching))
        producer = w.producer(topic, compression_type=kind, batching_enabled=batching)
        wanted = [f"{i} and the same again ".encode() * i * 3 for i in range(1, 201)]
        send_all(producer, wanted)
        same(receive(w.consumer(topic), 200), wanted)


@feature
def compression_lz4(w):
    compressed(w, pulsar.CompressionType.LZ4)


@feature
def compression_zlib(w):
    compressed(w, pulsar.CompressionType.ZLib)


@feature
def compression_zstd(w):
    compressed(w, pulsar.CompressionType.ZSTD)


@feature
def compression_snappy(w):
    compressed(w, pulsar.CompressionType.SNAPPY)


@feature
def chunked_large_messages(w):
    producer, consumer = w.producer(w.topic(), chunking_enabled=True), w.consumer(w.topic())
    wanted = [os.urandom(12 << 20), b"small", os.urandom((20 << 20) + 1)]
    for payload in wanted:
        producer.send(payload)
    same(receive(consumer, 3), wanted)
    nothing_more(consumer)


@feature
def keys_and_properties(w):
    for batching in (False, True):
        topic = w.topic(str(batching))
        producer = w.producer(topic, batching_enabled=batching)
        for i in range(50):
            producer.send(b"v%d" % i, properties={"n": str(i), "of": "50", "snow": "☃"},
                          partition_key=f"key-{i}", ordering_key=f"order-{i}", event_timestamp=1000 + i)
        for i, m in enumerate(receive(w.consumer(topic), 50)):
            assert m.data() == b"v%d" % i and m.properties() == {"n": str(i), "of": "50", "snow": "☃"}
            assert m.partition_key() == f"key-{i}" and m.event_timestamp() == 1000 + i
            assert m.ordering_key() == f"order-{i}" and m.producer_name() == producer.producer_name()
            assert abs(m.publish_timestamp() / 1000 - time.time()) < 60


@feature
def many_properties(w):
    producer = w.producer(w.topic())
    many = {f"property-{i}": "v" * 10 for i in range(10000)}
    producer.send(b"x", properties=many)
    assert receive(w.consumer(w.topic()), 1)[0].properties() == many


@feature
def too_large_is_refused(w):
    producer, consumer = w.producer(w.topic()), w.consumer(w.topic())
    refused(pulsar.MessageTooBig, lambda: producer.send(bytes((5 << 20) + 1)))
    largest = os.urandom((5 << 20) - 1024)
    producer.send(largest)
    same(receive(consumer, 1), [largest])


@feature
def producer_name_conflict(w):
    first, other = w.producer(w.topic(), producer_name="me"), w.another_client()
    refused(pulsar.ProducerBusy, lambda: w.producer(w.topic(), other, producer_name="me"))
    first.send(b"still there")
    first.close()
    w.producer(w.topic(), other, producer_name="me").send(b"mine now")


@feature
def generated_names(w):
    names = {w.producer(w.topic()).producer_name() for _ in range(10)}
    assert len(names) == 10 and all(names), names


MODE = pulsar.ProducerAccessMode


@feature
def access_shared(w):
    one, two = w.producer(w.topic()), w.producer(w.topic(), w.another_client())
    one.send(b"message 1")
    two.send(b"message 2")
    refused(pulsar.ProducerFenced, lambda: w.producer(w.topic(), access_mode=MODE.Exclusive))
    one.send(b"message 3")
    same(receive(w.consumer(w.topic()), 3), numbered(1, 4))


@feature
def access_exclusive(w):
    second = w.another_client()
    first = w.producer(w.topic(), access_mode=MODE.Exclusive)
    refused(pulsar.ProducerFenced, lambda: w.producer(w.topic(), second, access_mode=MODE.Exclusive))
    refused(pulsar.ProducerBusy, lambda: w.producer(w.topic(), second))
    first.send(b"message 0")
    first.close()
    w.producer(w.topic(), second, access_mode=MODE.Exclusive).send(b"message 1")
    same(receive(w.consumer(w.topic()), 2), numbered(0, 2))


@feature
def access_wait_for_exclusive(w):
    second, waited = w.another_client(), []
    first = w.producer(w.topic(), access_mode=MODE.Exclusive)
    thread = threading.Thread(target=lambda: waited.append(
        w.producer(w.topic(), second, access_mode=MODE.WaitForExclusive)))
    thread.start()
    first.send(b"message 0")
    thread.join(0.5)
    assert not waited, "one at a time"
    first.send(b"message 1")
    first.close()
    thread.join(20)
    waited[0].send(b"message 2")
    same(receive(w.consumer(w.topic()), 3), numbered(0, 3))


@feature
def access_exclusive_with_fencing(w):
    first = w.producer(w.topic(), access_mode=MODE.Exclusive)
    first.send(b"message 0")
    last = w.producer(w.topic(), w.another_client(), access_mode=MODE.ExclusiveWithFencing)
    refused(pulsar.PulsarException, lambda: first.send(b"fenced out"))
    last.send(b"message 1")
    consumer = w.consumer(w.topic())
    same(receive(consumer, 2), numbered(0, 2))
    nothing_more(consumer)


# ---- consuming ----

@feature
def exclusive_second_is_busy(w):
    first, other = w.consumer(w.topic()), w.another_client()
    refused(pulsar.ConsumerBusy, lambda: w.consumer(w.topic(), by=other))
    w.producer(w.topic()).send(b"message 0")
    same(receive(first, 1), numbered(0, 1))
    first.close()
    nothing_more(w.consumer(w.topic(), by=other))


@feature
def type_conflict_is_busy(w):
    first = w.shared(w.topic())
    refused(pulsar.ConsumerBusy, lambda: w.consumer(w.topic()))
    first.close()
    second = w.consumer(w.topic())
    refused(pulsar.ConsumerBusy, lambda: w.shared(w.topic()))
    second.close()
    w.shared(w.topic())


@feature
def initial_positions(w):
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 5))
    earliest = w.consumer(w.topic(), "from the start")
    latest = w.consumer(w.topic(), "from now on", initial_position=LATEST)
    send_all(producer, numbered(5, 10))
    same(receive(earliest, 10), numbered(0, 10))
    same(receive(latest, 5), numbered(5, 10))
    latest.close()
    nothing_more(earliest, w.consumer(w.topic(), "from now on"))


@feature
def each_subscription_gets_all(w):
    a, b = w.consumer(w.topic(), "a"), w.consumer(w.topic(), "b")
    send_all(w.producer(w.topic(), batching_enabled=True), numbered(0, 1000))
    same(receive(a, 1000), numbered(0, 1000))
    same(receive(b, 1000), numbered(0, 1000))


@feature
def shared_round_robin(w):
    consumers = [w.shared(w.topic(), receiver_queue_size=50) for _ in range(4)]
    producer = w.producer(w.topic(), max_pending_messages=2000)
    for payload in numbered(0, 2000):
        producer.send_async(payload, None)
    got = drain(consumers, 2000)
    same_in_any_order([m for g in got for m in g], numbered(0, 2000))
    assert all(len(g) > 200 for g in got), [len(g) for g in got]
    nothing_more(*consumers)


@feature
def shared_batches_and_chunks(w):
    consumers = [w.shared(w.topic(), receiver_queue_size=100) for _ in range(3)]
    producer = w.producer(w.topic(), batching_enabled=True)
    large = w.producer(w.topic(), chunking_enabled=True)
    wanted, heavy = numbered(0, 3000), [os.urandom(12 * 1024 * 1024) for _ in range(4)]
    thread = threading.Thread(target=lambda: [large.send(h) for h in heavy])
    thread.start()
    send_all(producer, wanted)
    thread.join()
    got = drain(consumers, 3004)
    same_in_any_order([m for g in got for m in g], wanted + heavy)


@feature
def shared_consumer_goes(w):
    """What a consumer held comes to the others: closed, and with its connection cut."""
    other = w.another_client()
    stays, closes, dies = w.shared(w.topic()), w.shared(w.topic()), w.shared(w.topic(), by=other)
    send_all(w.producer(w.topic()), numbered(0, 300))
    got = drain([stays, closes, dies], 300, ack=False)
    for m in got[0]:
        stays.acknowledge(m)
    closes.close()
    other.shutdown()
    same_in_any_order(got[0] + receive(stays, 300 - len(got[0])), numbered(0, 300))
    nothing_more(stays)


@feature
def receiver_queue_one(w):
    one = w.consumer(w.topic(), receiver_queue_size=1)
    send_all(w.producer(w.topic()), numbered(0, 200))
    send_all(w.producer(w.topic(), batching_enabled=True), numbered(200, 400))
    same(receive(one, 400), numbered(0, 400))
    nothing_more(one)


@feature
def receiver_queue_zero(w):
    zero, other = (w.shared(w.topic(), receiver_queue_size=0) for _ in range(2))
    send_all(w.producer(w.topic()), numbered(0, 50))
    got = [zero.receive()]  # and keeps none of the rest
    for _ in range(49):
        got.append(other.receive())
        other.acknowledge(got[-1])
    zero.acknowledge(got[0])
    same(got, numbered(0, 50))


@feature
def message_listener(w):
    got = []

    def heard(consumer, message):
        got.append(message)
        consumer.acknowledge(message)
    consumer = w.consumer(w.topic(), message_listener=heard)
    send_all(w.producer(w.topic(), batching_enabled=True), numbered(0, 500))
    soon(lambda: len(got) >= 500, "500 messages")
    same(got, numbered(0, 500))
    consumer.close()
    nothing_more(w.consumer(w.topic()))


@feature
def batch_receive(w):
    consumer = w.consumer(w.topic(), batch_receive_policy=pulsar.ConsumerBatchReceivePolicy(30, -1, 200))
    send_all(w.producer(w.topic(), batching_enabled=True), numbered(0, 100))
    got = []
    while len(got) < 100:
        some = consumer.batch_receive()
        assert 0 < len(some) <= 30, len(some)
        for m in some:
            consumer.acknowledge(m)
        got += some
    same(got, numbered(0, 100))


# ---- acknowledging ----

@feature
def ack_individual(w):
    send_all(w.producer(w.topic()), numbered(0, 100))
    consumer = w.consumer(w.topic())
    got = receive(consumer, 100, ack=False)
    for m in got[1::3]:
        consumer.acknowledge(m)
    consumer.close()
    left = [m.data() for i, m in enumerate(got) if i % 3 != 1]
    consumer = w.consumer(w.topic())
    same(receive(consumer, len(left)), left)
    nothing_more(consumer)


@feature
def ack_cumulative(w):
    send_all(w.producer(w.topic()), numbered(0, 100))
    other = w.another_client()
    consumer = w.consumer(w.topic(), by=other)
    consumer.acknowledge_cumulative(receive(consumer, 100, ack=False)[59])
    other.close()
    consumer = w.consumer(w.topic())
    same(receive(consumer, 40), numbered(60, 100))
    nothing_more(consumer)


@feature
def ack_by_another(w):
    a, b = w.shared(w.topic()), w.shared(w.topic())
    send_all(w.producer(w.topic()), numbered(0, 100))
    got = drain([a, b], 100, ack=False)
    for m in got[0]:
        b.acknowledge(m)
    for m in got[1]:
        a.acknowledge(m)
    a.close()
    b.close()
    nothing_more(w.shared(w.topic()))


@feature
def ack_batch_index(w):
    for kind in (EXCLUSIVE, SHARED):
        topic, keep = w.topic(str(kind)), {"consumer_type": kind, "batch_index_ack_enabled": True}
        consumer = w.consumer(topic, **keep)
        w.send_batch(topic, numbered(0, 100))
        got = receive(consumer, 100, ack=False)
        for m in got[::3]:
            consumer.acknowledge(m)
        left = [m.data() for i, m in enumerate(got) if i % 3]
        consumer.close()
        consumer = w.consumer(topic, **keep)
        same(receive(consumer, len(left)), left)
        nothing_more(consumer)


@feature
def ack_batch_index_cumulative(w):
    consumer = w.consumer(w.topic(), batch_index_ack_enabled=True)
    w.send_batch(w.topic(), numbered(0, 10))
    w.send_batch(w.topic(), numbered(10, 20))
    consumer.acknowledge_cumulative(receive(consumer, 20, ack=False)[13])
    consumer.close()
    consumer = w.consumer(w.topic(), batch_index_ack_enabled=True)
    same(receive(consumer, 6), numbered(14, 20))
    nothing_more(consumer)


@feature(restarts=True)
def ack_survives_restart(w):
    consumer = w.consumer(w.topic(), batch_index_ack_enabled=True)
    w.send_batch(w.topic(), numbered(0, 100))
    send_all(w.producer(w.topic()), numbered(100, 200))
    got = receive(consumer, 200, ack=False)
    for m in got[::3]:
        consumer.acknowledge(m)
    time.sleep(0.5)  # it groups them, and gets no receipt
    consumer.close()
    restart()
    left = [m.data() for i, m in enumerate(got) if i % 3]
    consumer = w.consumer(w.topic(), batch_index_ack_enabled=True)
    same(receive(consumer, len(left)), left)
    nothing_more(consumer)


@feature
def unsubscribe(w):
    producer = w.producer(w.topic())
    producer.send(b"message 0")
    consumer = w.consumer(w.topic())
    receive(consumer, 1)
    consumer.unsubscribe()
    assert admin("GET", w.path() + "/subscriptions") == []
    consumer = w.consumer(w.topic(), initial_position=LATEST)
    producer.send(b"message 1")
    same(receive(consumer, 1), numbered(1, 2))


# ---- redelivering ----

QUICK = {"negative_ack_redelivery_delay_ms": 100}


@feature
def negative_ack(w):
    for kind in (EXCLUSIVE, SHARED):
        topic = w.topic(str(kind))
        consumer = w.consumer(topic, consumer_type=kind, **QUICK)
        send_all(w.producer(topic), numbered(0, 20))
        for m in receive(consumer, 20, ack=False):
            (consumer.acknowledge if number(m) < 10 else consumer.negative_acknowledge)(m)
        same_in_any_order(receive(consumer, 10), numbered(10, 20))
        nothing_more(consumer)


@feature
def redelivery_count(w):
    consumers = [w.shared(w.topic(), **QUICK) for _ in range(2)]
    send_all(w.producer(w.topic()), numbered(0, 20))
    for count in range(4):
        for consumer, mine in zip(consumers, drain(consumers, 20, ack=False)):
            for m in mine:
                assert m.redelivery_count() == count, (m.redelivery_count(), count)
                (consumer.acknowledge if count == 3 else consumer.negative_acknowledge)(m)
    nothing_more(*consumers)


@feature
def ack_timeout(w):
    consumer = w.shared(w.topic(), unacked_messages_timeout_ms=10000)
    send_all(w.producer(w.topic()), numbered(0, 10))
    for m in receive(consumer, 10, ack=False)[::2]:
        consumer.acknowledge(m)
    assert sorted(map(number, receive(consumer, 5))) == [1, 3, 5, 7, 9]


@feature
def redeliver_unacknowledged(w):
    for kind in (EXCLUSIVE, SHARED):
        topic = w.topic(str(kind))
        consumer = w.consumer(topic, consumer_type=kind)
        send_all(w.producer(topic), numbered(0, 10))
        consumer.acknowledge(receive(consumer, 10, ack=False)[0])
        time.sleep(0.5)
        consumer.redeliver_unacknowledged_messages()
        same(receive(consumer, 9), numbered(1, 10))
        nothing_more(consumer)


@feature
def dead_letter_policy(w):
    dead = w.consumer(w.topic() + "-sub-DLQ")
    consumer = w.shared(w.topic(), dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(2), **QUICK)
    send_all(w.producer(w.topic()), numbered(0, 10))
    for _ in range(30):
        consumer.negative_acknowledge(receive(consumer, 1, ack=False)[0])
    same_in_any_order(receive(dead, 10), numbered(0, 10))
    nothing_more(consumer, dead)


@feature
def dead_letter_initial_subscription(w):
    consumer = w.shared(w.topic(), **QUICK, dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(
        1, w.topic("dead"), "kept"))
    send_all(w.producer(w.topic()), numbered(0, 5))
    for _ in range(10):
        consumer.negative_acknowledge(receive(consumer, 1, ack=False)[0])

    def made():
        try:
            return "kept" in admin("GET", w.path("dead") + "/subscriptions")
        except urllib.error.HTTPError:
            return False
    soon(made, "the subscription is made with the producer")
    dead = w.consumer(w.topic("dead"), "kept", initial_position=LATEST)
    same_in_any_order(receive(dead, 5), numbered(0, 5))


@feature
def unacked_limit(w):
    """Who acknowledges nothing gets no more than the limit, and goes on after half of it."""
    limit = ARGS.unacked_limit
    consumer = w.shared(w.topic(), receiver_queue_size=100)
    send_all(w.producer(w.topic()), numbered(0, 2 * limit))
    got = receive(consumer, limit, ack=False)
    nothing_more(consumer)
    for m in got[:limit // 4]:
        consumer.acknowledge(m)
    nothing_more(consumer)
    for m in got[limit // 4:]:
        consumer.acknowledge(m)
    same_in_any_order(got + receive(consumer, limit), numbered(0, 2 * limit))


# ---- going to a place, readers, many topics ----

@feature
def seek_by_id(w):
    for kind in (EXCLUSIVE, SHARED):
        topic = w.topic(str(kind))
        ids = send_all(w.producer(topic), numbered(0, 100))
        consumer = w.consumer(topic, consumer_type=kind, start_message_id_inclusive=True)
        receive(consumer, 100)
        consumer.seek(ids[40])
        same(receive(consumer, 60), numbered(40, 100))
        nothing_more(consumer)
        consumer.seek(ids[95])
        same(receive(consumer, 5), numbered(95, 100))


@feature
def seek_in_batch(w):
    w.send_batch(w.topic(), numbered(0, 10))
    w.send_batch(w.topic(), numbered(10, 20))
    consumer = w.consumer(w.topic(), start_message_id_inclusive=True)
    got = receive(consumer, 20, ack=False)
    consumer.seek(got[13].message_id())
    same(receive(consumer, 7, ack=False), numbered(13, 20))


@feature
def seek_to_ends(w):
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 50))
    consumer = w.consumer(w.topic())
    consumer.seek(pulsar.MessageId.latest)
    nothing_more(consumer)
    producer.send(b"message 50")
    same(receive(consumer, 1), numbered(50, 51))
    consumer.seek(pulsar.MessageId.earliest)
    same(receive(consumer, 51), numbered(0, 51))


@feature
def seek_by_time(w):
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 50))
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    send_all(producer, numbered(50, 100))
    consumer = w.consumer(w.topic())
    receive(consumer, 100)
    consumer.seek(between)
    same(receive(consumer, 50), numbered(50, 100))
    consumer.seek(1)
    same(receive(consumer, 100), numbered(0, 100))


@feature
def last_message_id(w):
    consumer = w.consumer(w.topic())
    assert consumer.get_last_message_id().entry_id() == -1
    ids = send_all(w.producer(w.topic()), numbered(0, 10))
    assert consumer.get_last_message_id().entry_id() == ids[9].entry_id()
    w.send_batch(w.topic(), numbered(10, 20))
    last, got = consumer.get_last_message_id(), receive(consumer, 20)[19].message_id()
    assert (last.ledger_id(), last.entry_id(), last.batch_index()) == (
        got.ledger_id(), got.entry_id(), got.batch_index())


@feature
def reader_earliest(w):
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 100))
    reader, second = (w.reader(w.topic(), pulsar.MessageId.earliest) for _ in range(2))
    same(read(reader, 100), numbered(0, 100))
    send_all(producer, numbered(100, 3000))
    same(read(reader, 2900), numbered(100, 3000))
    same(read(second, 3000), numbered(0, 3000))
    nothing_more(reader)


@feature
def reader_latest(w):
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 10))
    reader = w.reader(w.topic(), pulsar.MessageId.latest)
    nothing_more(reader)
    send_all(producer, numbered(10, 20))
    same(read(reader, 10), numbered(10, 20))


@feature
def reader_from_id(w):
    ids = send_all(w.producer(w.topic()), numbered(0, 100))
    same(read(w.reader(w.topic(), ids[30]), 69), numbered(31, 100))
    same(read(w.reader(w.topic(), ids[30], start_message_id_inclusive=True), 70), numbered(30, 100))
    nothing_more(w.reader(w.topic(), ids[99]))


@feature
def reader_in_batch(w):
    w.send_batch(w.topic(), numbered(0, 10))
    w.send_batch(w.topic(), numbered(10, 20))
    start = read(w.reader(w.topic(), pulsar.MessageId.earliest), 20)[5].message_id()
    same(read(w.reader(w.topic(), start), 14), numbered(6, 20))
    same(read(w.reader(w.topic(), start, start_message_id_inclusive=True), 15), numbered(5, 20))


@feature
def reader_has_message(w):
    producer = w.producer(w.topic())
    reader = w.reader(w.topic(), pulsar.MessageId.earliest)
    assert not reader.has_message_available(), "an empty topic has none"
    send_all(producer, numbered(0, 10))
    w.send_batch(w.topic(), numbered(10, 20))
    for i in range(20):
        assert reader.has_message_available(), f"message {i} is there"
        same(read(reader, 1), numbered(i, i + 1))
    assert not reader.has_message_available(), "that was the last"
    producer.send(b"message 20")
    assert reader.has_message_available(), "a new one"


@feature
def reader_seek(w):
    ids = send_all(w.producer(w.topic()), numbered(0, 50))
    reader = w.reader(w.topic(), pulsar.MessageId.earliest, start_message_id_inclusive=True)
    read(reader, 50)
    reader.seek(ids[20])
    same(read(reader, 30), numbered(20, 50))
    reader.seek(pulsar.MessageId.earliest)
    same(read(reader, 50), numbered(0, 50))


@feature(restarts=True)
def seek_survives_restart(w):
    ids = send_all(w.producer(w.topic()), numbered(0, 100))
    consumer = w.consumer(w.topic(), start_message_id_inclusive=True)
    receive(consumer, 100)
    consumer.seek(ids[60])
    consumer.close()  # else it may give out what is in its queue before it sees that the server died
    restart()
    consumer = w.consumer(w.topic(), start_message_id_inclusive=True)
    same(receive(consumer, 40), numbered(60, 100))
    nothing_more(consumer)


@feature(restarts=True)
def reader_survives_restart(w):
    """It is the client that knows where it was."""
    send_all(w.producer(w.topic()), numbered(0, 3000))
    reader = w.reader(w.topic(), pulsar.MessageId.earliest)
    same(read(reader, 1200), numbered(0, 1200))
    restart()
    same(read(reader, 1800), numbered(1200, 3000))
    assert not reader.has_message_available()


@feature
def reader_latest_has_no_message(w):
    """The last message's id and where the reader stands are compared."""
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 5))
    reader = w.reader(w.topic(), pulsar.MessageId.latest)
    assert not reader.has_message_available()
    producer.send(b"message 5")
    assert reader.has_message_available()
    same(read(reader, 1), numbered(5, 6))
    assert not reader.has_message_available()


@feature
def reader_leaves_no_subscription(w):
    send_all(w.producer(w.topic()), numbered(0, 10))
    reader = w.reader(w.topic(), pulsar.MessageId.earliest)
    read(reader, 5)
    assert len(admin("GET", w.path() + "/stats")["subscriptions"]) == 1
    reader.close()
    soon(lambda: admin("GET", w.path() + "/subscriptions") == [], "its subscription goes with it")


@feature
def table_view(w):
    producer = w.producer(w.topic())
    for i in range(100):
        producer.send(b"value %d" % i, partition_key=f"key-{i % 10}")
    view = w.client.create_table_view(w.topic())
    assert view.get("key-3") == b"value 93" and len(view) == 10
    producer.send(b"newest", partition_key="key-3")
    soon(lambda: view.get("key-3") == b"newest", "the view follows")
    view.close()


@feature
def multi_topic(w):
    topics = [w.topic(t) for t in "abc"]
    admin("PUT", w.path("c") + "/partitions", 2)
    consumer = w.consumer(topics)
    for i, topic in enumerate(topics):
        send_all(w.producer(topic), numbered(20 * i, 20 * i + 20))
    same_in_any_order(receive(consumer, 60), numbered(0, 60))
    nothing_more(consumer)


def matching(w):
    return w.consumer(re.compile("persistent://public/default/" + w.topic("match-.*")))


@feature
def pattern(w):
    for topic in ("match-a", "match-b", "other"):
        w.producer(w.topic(topic)).send(topic.encode())
    admin("PUT", w.path("match-c") + "/partitions", 3)
    w.producer(w.topic("match-c")).send(b"match-c")
    consumer = matching(w)
    same_in_any_order(receive(consumer, 3), [b"match-a", b"match-b", b"match-c"])
    nothing_more(consumer)


@feature
def pattern_topic_appears_later(w):
    """This client asks again and again: once a minute, whatever it is told."""
    w.producer(w.topic("match-a")).send(b"first")
    consumer = matching(w)
    same(receive(consumer, 1), [b"first"])
    w.producer(w.topic("match-b")).send(b"later")
    same(receive(consumer, 1, seconds=80), [b"later"])
    nothing_more(consumer)


@feature
def non_persistent(w):
    topic = "non-persistent://public/default/" + w.topic()
    send_all(w.producer(topic), numbered(0, 5))  # nobody listens: they are gone
    one, two = w.consumer(topic, "a"), w.consumer(topic, "b", consumer_type=SHARED)
    send_all(w.producer(topic), numbered(5, 105))
    send_all(w.producer(topic, batching_enabled=True), numbered(105, 205))
    same(receive(one, 200), numbered(5, 205))
    same(receive(two, 200), numbered(5, 205))
    nothing_more(one, two)


# ---- topics ----

def in_order(messages):
    """In each partition the numbers only grow."""
    last = {}
    for m in messages:
        assert last.get(m.message_id().partition(), -1) < number(m), f"{number(m)} is late"
        last[m.message_id().partition()] = number(m)


def through(w, n, **options):
    admin("PUT", w.path() + "/partitions", 4)
    consumer = w.consumer(w.topic())
    send_all(w.producer(w.topic(), **options), numbered(0, n))
    got = receive(consumer, n)
    same_in_any_order(got, numbered(0, n))
    in_order(got)
    nothing_more(consumer)
    return {m.message_id().partition() for m in got}


ROUTING = pulsar.PartitionsRoutingMode


@feature
def partitioned_round_robin(w):
    assert through(w, 400, message_routing_mode=ROUTING.RoundRobinDistribution) == {0, 1, 2, 3}
    assert len(w.client.get_topic_partitions(w.topic())) == 4
    stats = admin("GET", w.path() + "/partitioned-stats?perPartition=true")
    assert len(stats["partitions"]) == 4 and stats["metadata"]["partitions"] == 4


@feature
def partitioned_single(w):
    assert len(through(w, 400, message_routing_mode=ROUTING.UseSinglePartition)) == 1


@feature
def partitioned_custom_router(w):
    assert through(w, 100, message_routing_mode=ROUTING.CustomPartition,
                   message_router=lambda message, partitions: partitions - 2) == {2}


@feature
def partitioned_by_key(w):
    admin("PUT", w.path() + "/partitions", 3)
    consumer, producer = w.consumer(w.topic()), w.producer(w.topic())
    for i in range(300):
        producer.send(b"message %d" % i, partition_key=f"key-{i % 10}")
    got, home = receive(consumer, 300), {}
    same_in_any_order(got, numbered(0, 300))
    in_order(got)
    for m in got:
        partition = m.message_id().partition()
        assert home.setdefault(m.partition_key(), partition) == partition
    assert len(home) == 10


@feature
def partitioned_deleted_is_empty(w):
    admin("PUT", w.path() + "/partitions", 2)
    producer = w.producer(w.topic())
    send_all(producer, numbered(0, 10))
    producer.close()
    admin("DELETE", w.path() + "/partitions")
    admin("PUT", w.path() + "/partitions", 2)
    consumer = w.consumer(w.topic())
    send_all(w.producer(w.topic()), numbered(10, 20))
    same_in_any_order(receive(consumer, 10), numbered(10, 20))
    nothing_more(consumer)


@feature
def auto_creation_rules(w):
    namespace = w.namespace()
    base, rule = f"persistent://{namespace}/", f"/namespaces/{namespace}/autoTopicCreation"
    admin("POST", rule, {"allowAutoTopicCreation": False})
    refused(pulsar.PulsarException, lambda: w.producer(base + "none"))
    refused(pulsar.PulsarException, lambda: w.consumer(base + "none"))
    assert admin("GET", f"/persistent/{namespace}") == []
    admin("POST", rule, {"allowAutoTopicCreation": True, "topicType": "partitioned",
                         "defaultNumPartitions": 3})
    w.producer(base + "three").send(b"x")
    assert len(w.client.get_topic_partitions(base + "three")) == 3
    refused(pulsar.TopicNotFound, lambda: w.producer(base + "three-partition-7"))


@feature
def refused_topics(w):
    refused(pulsar.TopicNotFound, lambda: w.producer("persistent://no-tenant/no-namespace/t"))
    refused(pulsar.PulsarException, lambda: w.consumer("persistent://public/no-such-namespace/t"))
    w.producer(w.topic()).send(b"the client goes on")


@feature
def terminated_topic(w):
    producer = w.producer(w.topic())
    ids = send_all(producer, numbered(0, 10))
    consumer = w.consumer(w.topic())
    assert admin("POST", w.path() + "/terminate")["entryId"] == ids[9].entry_id()
    refused(pulsar.TopicTerminated, lambda: w.producer(w.topic()))
    same(receive(consumer, 10), numbered(0, 10))
    nothing_more(consumer)  # and its connection lives: it was sent nothing that it does not know
    w.producer(w.topic("another")).send(b"x")


@feature
def unacked_limit_of_a_namespace(w):
    """It holds at once for consumers that are there, and so does its end."""
    namespace = w.namespace()
    topic, rule = f"persistent://{namespace}/t", f"/namespaces/{namespace}/maxUnackedMessagesPerConsumer"
    consumer = w.shared(topic, receiver_queue_size=20)
    admin("POST", rule, 50)

    def is_limited():
        send_all(producer, numbered(0, 10))
        stats = admin("GET", f"/persistent/{namespace}/t/stats")["subscriptions"]["sub"]["consumers"][0]
        while True:
            try:
                consumer.receive(timeout_millis=100)
            except pulsar.Timeout:
                break
        return stats["blockedConsumerOnUnackedMsgs"]
    producer = w.producer(topic)
    soon(is_limited, "a consumer with 50 messages is blocked")
    send_all(producer, numbered(0, 100))
    nothing_more(consumer)
    admin("DELETE", rule)
    receive(consumer, 100, ack=False)


@feature
def limits_of_a_namespace(w):
    namespace = w.namespace()
    topic, rules = f"persistent://{namespace}/t", f"/namespaces/{namespace}/"
    names = ("maxProducersPerTopic", "maxConsumersPerTopic", "maxSubscriptionsPerTopic")
    w.producer(topic)
    consumer = w.shared(topic)
    for name in names:
        admin("POST", rules + name, 1)

    def is_refused(error, make):
        try:
            make().close()
        except error:
            return True
    soon(lambda: is_refused(pulsar.ProducerBusy, lambda: w.producer(topic)), "one producer")
    soon(lambda: is_refused(pulsar.ConsumerBusy, lambda: w.shared(topic)), "one consumer")
    consumer.close()
    refused(pulsar.PulsarException, lambda: w.shared(topic, sub="another"))
    for name in names:
        admin("DELETE", rules + name)
    soon(lambda: not is_refused(pulsar.ProducerBusy, lambda: w.producer(topic)), "no limit")
    w.shared(topic, sub="another").close()


@feature
def who_is_inside(w):
    producer = w.producer(w.topic(), producer_name="me", properties={"role": "writer"})
    consumer = w.shared(w.topic(), consumer_name="you", properties={"role": "reader"})
    send_all(producer, numbered(0, 3))
    receive(consumer, 3)

    def is_known():
        stats = admin("GET", w.path() + "/stats")
        (p,), (c,) = stats["publishers"], stats["subscriptions"]["sub"]["consumers"]
        for who, role in ((p, "writer"), (c, "reader")):
            assert who["metadata"] == {"role": role} and who["address"].startswith("/127.0.0.1:"), who
            assert who["clientVersion"] and who["connectedSince"], who
        assert (p["producerName"], p["accessMode"], c["consumerName"]) == ("me", "Shared", "you")
        return c["msgOutCounter"] == 3 and c["lastAckedTimestamp"] > 0 and c["unackedMessages"] == 0
    soon(is_known, "three messages, acknowledged")


class Publishing:
    """Publishes until told to stop; what was acknowledged must all come, each in its turn."""

    def __init__(self, w, topic):
        self.producer = w.producer(topic, batching_enabled=True, send_timeout_millis=0)
        self.acked, self.stop = [], threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        i = 0
        while not self.stop.is_set():
            def sent(result, _id, n=i):
                if result == pulsar.Result.Ok:
                    self.acked.append(n)
            self.producer.send_async(b"message %d" % i, sent)
            i += 1
            time.sleep(0.0003)
        self.producer.flush()

    def progress(self, n):
        before = len(self.acked)
        soon(lambda: len(self.acked) >= before + n, "publishing goes on")

    def check(self, consumer):
        self.stop.set()
        self.thread.join(30)
        expected = 0
        while expected < len(self.acked):
            n = number(receive(consumer, 1)[0])
            assert n <= expected, f"message {n} came, {expected} did not"
            expected = max(expected, n + 1)
        assert sorted(self.acked) == list(range(expected))


@feature
def unload_while_busy(w):
    consumer, publishing = w.consumer(w.topic()), Publishing(w, w.topic())
    for _ in range(5):
        publishing.progress(300)
        admin("PUT", w.path() + "/unload")
    publishing.progress(300)
    publishing.check(consumer)


@feature(restarts=True)
def broker_restart(w):
    """The client finds the restarted broker by itself; what it was told is stored, is."""
    consumer, publishing = w.consumer(w.topic()), Publishing(w, w.topic())
    for _ in range(3):
        publishing.progress(500)
        restart()
    publishing.progress(500)
    publishing.check(consumer)


@feature
def http_service_url(w):
    admin("PUT", w.path() + "/partitions", 2)
    client = w.another_client(ARGS.web_url)
    send_all(w.producer(w.topic(), client), numbered(0, 20))
    same_in_any_order(receive(w.consumer(w.topic(), by=client), 20), numbered(0, 20))


@feature
def tls(w):
    admin("PUT", w.path() + "/partitions", 8)
    for i, url in enumerate((ARGS.tls_url, ARGS.tls_web_url)):
        client = w.another_client(url, tls_trust_certs_file_path=ARGS.tls_trust, tls_validate_hostname=True)
        send_all(w.producer(w.topic(), client), numbered(0, 1000))
        same_in_any_order(receive(w.consumer(w.topic(), f"sub-{i}", by=client), 1000 * (i + 1)),
                          numbered(0, 1000) * (i + 1))


@feature
def tls_not_trusted(w):
    client = w.another_client(ARGS.tls_url, operation_timeout_seconds=3)
    try:
        w.producer(w.topic(), client)
    except (pulsar.ConnectError, pulsar.Timeout):
        return
    raise AssertionError("a broker that cannot be trusted was")


def put_off_times():
    with urllib.request.urlopen(ARGS.web_url + "/metrics") as r:
        line = next(s for s in r.read().decode().splitlines()
                    if s.startswith("lgm_producers_put_off_total"))
    return int(line.split()[-1])


def flooded(w):
    """A producer that sends more than there is room for is closed and opens again by itself: each
    message is there once, in order; another one on the same connection goes on meanwhile.  A disk
    that is fast enough makes room before that: integration/pressure_test.py holds the bookies."""
    n, size = 2500, 50000
    consumer = w.consumer(w.topic(), receiver_queue_size=100)
    flood = w.producer(w.topic(), max_pending_messages=1000, send_timeout_millis=0)
    calm = w.producer(w.topic("calm"))
    results, slowest = [], 0
    for i in range(n):
        flood.send_async(b"%08d" % i + bytes(size - 8), lambda result, _: results.append(result))
        if i % 100 == 99:
            began = time.monotonic()
            calm.send(b"still here")
            slowest = max(slowest, time.monotonic() - began)
    flood.flush()
    soon(lambda: len(results) == n, "all are answered")
    assert set(results) == {pulsar.Result.Ok}
    for i, m in enumerate(receive(consumer, n)):
        assert m.data()[:8] == b"%08d" % i, (i, m.data()[:8])
    nothing_more(consumer)
    print(f"put off {put_off_times()} times; the other's slowest publish took {slowest:.2f} s", flush=True)


@feature(restarts=True)
def put_off_for_a_moment(w):
    restart("maxMessagePublishBufferSizeInMB=11")
    try:
        flooded(w)
    finally:
        restart()


@feature(restarts=True)
def a_million_of_1_kib(w):
    n = ARGS.messages
    producer = w.producer(w.topic(), batching_enabled=True, batching_max_messages=1000,
                          batching_max_publish_delay_ms=10, max_pending_messages=5000,
                          batching_max_allowed_size_in_bytes=256 * 1024, send_timeout_millis=0)
    consumer = w.consumer(w.topic(), receiver_queue_size=5000)
    filler = os.urandom(1024 - 16).hex().encode()[:1024 - 16]
    sent_sum, errors = hashlib.sha256(), []
    began = time.monotonic()

    def publish():
        for i in range(n):
            payload = b"%016d" % i + filler
            sent_sum.update(payload)
            producer.send_async(payload, lambda r, _: errors.append(r) if r != pulsar.Result.Ok else 0)
        producer.flush()
    thread = threading.Thread(target=publish, daemon=True)
    thread.start()
    got_sum = hashlib.sha256()
    for i in range(n):
        m = consumer.receive(timeout_millis=60000)
        got_sum.update(m.data())
        if i % 1000 == 999 or i == n - 1:
            consumer.acknowledge_cumulative(m)
    thread.join()
    seconds = time.monotonic() - began
    assert not errors and got_sum.digest() == sent_sum.digest()
    print(f"{n} messages of 1 KiB published, consumed and compared in {seconds:.1f} s, "
          f"{n / seconds:.0f} a second", flush=True)


# ---- running ----

def where(error):
    """Lines of ours, from the feature down to what failed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
    return ",".join(str(f.lineno) for f in frames[1:])


def show(name):
    """Runs a feature in a thread, which is left behind if it does not end."""
    failure, seconds = [], SECONDS_PER_FEATURE * (3 if name == "a_million_of_1_kib" else 1)

    def run():
        try:
            w = World(name)
            try:
                FEATURES[name](w)
            finally:
                w.close()
        except BaseException as e:
            traceback.print_exc()
            failure.append(f"{type(e).__name__}: {e} at line {where(e)}")
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        stack = traceback.format_stack(sys._current_frames()[thread.ident])
        print("".join(stack), file=sys.stderr)
        failure.append(f"no end within {seconds} s")
    if failure:
        return f"FAIL {name} " + " ".join(failure[0].split())[:300]
    return f"ok {name}"


def main():
    names = [n for n in FEATURES if ARGS.only in n and (ARGS.restarts or n not in NEED_RESTARTS)]
    for name in names:
        print(name if ARGS.list else show(name), flush=True)
    sys.stderr.flush()
    os._exit(0)  # whatever a failed feature has left running


main()
