#!/usr/bin/env python3
"""python_client.py - what Apache's Python client can do with us, feature by feature."""
import argparse
import hashlib
import json
import os
import sys
import threading
import time
import urllib.request

import pulsar

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", required=True)
parser.add_argument("--messages", type=int, default=1000000)
parser.add_argument("--only", default="", help="features whose name holds this")
ARGS = parser.parse_args()
EARLIEST = pulsar.InitialPosition.Earliest
COMPRESSIONS = {"none": pulsar.CompressionType.NONE, "lz4": pulsar.CompressionType.LZ4,
                "zlib": pulsar.CompressionType.ZLib, "zstd": pulsar.CompressionType.ZSTD,
                "snappy": pulsar.CompressionType.SNAPPY}


def client_of(server):
    return pulsar.Client(server.url, operation_timeout_seconds=30,
                         logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def subscribe(client, topic, sub="sub", **kwargs):
    return client.subscribe(topic, sub, initial_position=EARLIEST, **kwargs)


def receive_all(consumer, n, ack=True):
    got = []
    for _ in range(n):
        message = consumer.receive(timeout_millis=30000)
        got.append(message)
        if ack:
            consumer.acknowledge(message)
    return got


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
    assert done.wait(120) and not failed
    return ids


def plain(client, server):
    consumer = subscribe(client, "plain")
    producer = client.create_producer("plain", batching_enabled=False)
    ids = [producer.send(f"message {i}".encode()) for i in range(500)]
    got = receive_all(consumer, 500)
    assert [m.data() for m in got] == [f"message {i}".encode() for i in range(500)]
    assert [str(m.message_id()) for m in got] == [str(i) for i in ids]
    assert producer.last_sequence_id() == 499


def batched(client, server):
    producer = client.create_producer("batched", batching_enabled=True,
                                      batching_max_publish_delay_ms=5, block_if_queue_full=True)
    wanted = [f"message {i}".encode() for i in range(20000)]
    send_all(producer, wanted)
    consumer = subscribe(client, "batched")
    assert [m.data() for m in receive_all(consumer, 20000)] == wanted


def each_compression(client, server):
    for name, kind in COMPRESSIONS.items():
        for batching in (False, True):
            topic = f"compressed-{name}-{batching}"
            producer = client.create_producer(topic, compression_type=kind, batching_enabled=batching,
                                              block_if_queue_full=True)
            wanted = [(f"{i} " * 500).encode() for i in range(200)]
            send_all(producer, wanted)
            assert [m.data() for m in receive_all(subscribe(client, topic), 200)] == wanted, topic


def keys_and_properties(client, server):
    for batching in (False, True):
        topic = f"keys-{batching}"
        producer = client.create_producer(topic, batching_enabled=batching)
        for i in range(50):
            producer.send(b"x", properties={"n": str(i), "of": "50", "snow": "☃"},
                          partition_key=f"key-{i}", event_timestamp=1000 + i)
        for i, m in enumerate(receive_all(subscribe(client, topic), 50)):
            assert m.properties() == {"n": str(i), "of": "50", "snow": "☃"}
            assert m.partition_key() == f"key-{i}" and m.event_timestamp() == 1000 + i
            assert abs(m.publish_timestamp() / 1000 - time.time()) < 60
    producer = client.create_producer("large-properties", batching_enabled=False)
    many = {f"property-{i}": "v" * 10 for i in range(10000)}
    producer.send(b"x", properties=many)
    assert receive_all(subscribe(client, "large-properties"), 1)[0].properties() == many


def chunked_20_mib(client, server):
    producer = client.create_producer("chunked", chunking_enabled=True, batching_enabled=False)
    consumer = subscribe(client, "chunked")
    wanted = [os.urandom(20 * 1024 * 1024) for _ in range(2)]
    for payload in wanted:
        producer.send(payload)
    producer.send(b"small")
    got = receive_all(consumer, 3)
    assert [m.data() for m in got] == [*wanted, b"small"]


def cumulative_ack_and_reconnect(client, server):
    producer = client.create_producer("cumulative", batching_enabled=False)
    for i in range(100):
        producer.send(str(i).encode())
    other = client_of(server)
    consumer = subscribe(other, "cumulative")
    got = receive_all(consumer, 100, ack=False)
    consumer.acknowledge_cumulative(got[59])
    other.close()
    consumer = subscribe(client, "cumulative")
    assert [m.data() for m in receive_all(consumer, 40)] == [str(i).encode() for i in range(60, 100)]


def single_acks_leave_the_rest(client, server):
    producer = client.create_producer("holes", batching_enabled=False)
    for i in range(100):
        producer.send(str(i).encode())
    other = client_of(server)
    consumer = subscribe(other, "holes")
    got = receive_all(consumer, 100, ack=False)
    for m in got[1::3]:
        consumer.acknowledge(m)
    other.close()
    left = [str(i).encode() for i in range(100) if i % 3 != 1]
    consumer = subscribe(client, "holes")
    assert [m.data() for m in receive_all(consumer, len(left))] == left


def redelivery(client, server):
    producer = client.create_producer("again", batching_enabled=False)
    for i in range(10):
        producer.send(str(i).encode())
    consumer = subscribe(client, "again")
    first = receive_all(consumer, 10, ack=False)
    consumer.acknowledge(first[0])
    consumer.redeliver_unacknowledged_messages()
    assert [m.data() for m in receive_all(consumer, 9)] == [str(i).encode() for i in range(1, 10)]


def nothing_comes_twice(client, server):
    producer = client.create_producer("once", batching_enabled=False)
    producer.send(b"only")
    consumer = subscribe(client, "once")
    receive_all(consumer, 1)
    try:
        consumer.receive(timeout_millis=500)
        raise AssertionError("a second message")
    except pulsar.Timeout:
        pass


def unsubscribe_and_close(client, server):
    producer = client.create_producer("gone", batching_enabled=False)
    producer.send(b"before")
    consumer = subscribe(client, "gone")
    receive_all(consumer, 1)
    consumer.unsubscribe()
    consumer = client.subscribe("gone", "sub", initial_position=pulsar.InitialPosition.Latest)
    producer.send(b"after")
    assert receive_all(consumer, 1)[0].data() == b"after"
    consumer.close()
    producer.close()
    client.create_producer("gone").close()


def two_subscriptions_each_get_all(client, server):
    a, b = subscribe(client, "fan", "a"), subscribe(client, "fan", "b")
    producer = client.create_producer("fan")
    wanted = [str(i).encode() for i in range(1000)]
    send_all(producer, wanted)
    assert [m.data() for m in receive_all(a, 1000)] == wanted
    assert [m.data() for m in receive_all(b, 1000)] == wanted


def refused(error, function):
    began = time.monotonic()
    try:
        function()
    except error as e:
        assert time.monotonic() - began < 25, "answered by a timeout, not by the broker"
        return str(e)
    except Exception as e:
        raise AssertionError(f"{type(e).__name__} {e} instead of {error.__name__}") from e
    raise AssertionError(f"no {error.__name__}")


def refusals_are_answers(client, server):
    first = subscribe(client, "busy")
    refused(pulsar.ConsumerBusy, lambda: subscribe(client_of(server), "busy"))
    first.close()
    named = client.create_producer("busy", producer_name="me")
    refused(pulsar.ProducerBusy, lambda: client_of(server).create_producer("busy", producer_name="me"))
    named.close()
    refused(pulsar.TopicNotFound,
            lambda: client.create_producer("persistent://no-tenant/no-namespace/t"))
    refused(pulsar.PulsarException, lambda: client.subscribe(
        "busy", "sub", consumer_type=pulsar.ConsumerType.KeyShared))
    refused(pulsar.PulsarException, lambda: client.create_reader("busy", pulsar.MessageId.earliest))
    refused(pulsar.PulsarException, lambda: client.create_producer("non-persistent://public/default/t"))


def survives_kill_9(client, server):
    """The client finds the restarted broker by itself; what it was told is stored, is."""
    producer = client.create_producer("killed", batching_enabled=True, block_if_queue_full=True,
                                      send_timeout_millis=0)
    consumer = subscribe(client, "killed")
    acked, stop = [], threading.Event()
    lock = threading.Lock()

    def publish():
        i = 0
        while not stop.is_set():
            def sent(result, _id, n=i):
                if result == pulsar.Result.Ok:
                    with lock:
                        acked.append(n)
            producer.send_async(str(i).encode(), sent)
            i += 1
            time.sleep(0.0002)
    thread = threading.Thread(target=publish)
    thread.start()
    for _ in range(3):
        before = len(acked)
        lgm.wait_until(lambda: len(acked) > before + 500, 60, "progress")
        server.kill()
        server.start()
    before = len(acked)
    lgm.wait_until(lambda: len(acked) > before + 500, 60, "progress")
    stop.set()
    thread.join()
    producer.flush()
    seen, order = set(), []
    while len(seen) < len(acked) or not set(acked) <= seen:
        m = consumer.receive(timeout_millis=30000)
        consumer.acknowledge(m)
        n = int(m.data())
        if n not in seen:
            order.append(n)
        seen.add(n)
    assert order == sorted(order), "first appearances out of order"


# ---- Shared subscriptions ----

SHARED = pulsar.ConsumerType.Shared


def shared(client, topic, sub="sub", **kwargs):
    return subscribe(client, topic, sub, consumer_type=SHARED, **kwargs)


def drain(consumers, n, ack=True, seconds=60):
    """n messages, from whichever of the consumers has some: a list for each of them."""
    got, end = [[] for _ in consumers], time.monotonic() + seconds
    while sum(map(len, got)) < n:
        assert time.monotonic() < end, f"{[len(g) for g in got]} of {n}"
        for consumer, mine in zip(consumers, got):
            try:
                message = consumer.receive(timeout_millis=20)
            except pulsar.Timeout:
                continue
            mine.append(message)
            if ack:
                consumer.acknowledge(message)
    return got


def nothing_more(consumer, milliseconds=500):
    try:
        message = consumer.receive(timeout_millis=milliseconds)
        raise AssertionError(f"{message.data()} came")
    except pulsar.Timeout:
        pass


def shared_round_robin(client, server):
    consumers = [shared(client, "turns", receiver_queue_size=50) for _ in range(4)]
    producer = client.create_producer("turns", batching_enabled=False, block_if_queue_full=True)
    wanted = [str(i).encode() for i in range(2000)]
    send_all(producer, wanted)
    got = drain(consumers, 2000)
    assert sorted(m.data() for g in got for m in g) == sorted(wanted)
    assert all(len(g) > 200 for g in got), [len(g) for g in got]
    for consumer in consumers:
        nothing_more(consumer, 100)


def shared_batches_and_chunks(client, server):
    consumers = [shared(client, "mixed", receiver_queue_size=100) for _ in range(3)]
    producer = client.create_producer("mixed", batching_enabled=True, block_if_queue_full=True)
    large = client.create_producer("mixed", chunking_enabled=True, batching_enabled=False)
    wanted = [str(i).encode() for i in range(3000)]
    heavy = [os.urandom(12 * 1024 * 1024) for _ in range(4)]
    thread = threading.Thread(target=lambda: [large.send(h) for h in heavy])
    thread.start()
    send_all(producer, wanted)
    thread.join()
    got = drain(consumers, 3004)
    assert sorted(m.data() for g in got for m in g) == sorted(wanted + heavy)


def shared_small_queue(client, server):
    topic = "small"
    producer = client.create_producer(topic, batching_enabled=False)
    one, two = shared(client, topic, receiver_queue_size=10), shared(client, topic)
    ids = send_all(producer, [str(i).encode() for i in range(100)])
    got = drain([one, two], 100)
    assert len(ids) == 100 and all(got)


def shared_redelivery_counts(client, server):
    producer = client.create_producer("nacks", batching_enabled=False)
    consumers = [shared(client, "nacks", negative_ack_redelivery_delay_ms=100) for _ in range(2)]
    send_all(producer, [str(i).encode() for i in range(20)])
    for counts in range(3):
        got = drain(consumers, 20, ack=False)
        for consumer, mine in zip(consumers, got):
            for m in mine:
                assert m.redelivery_count() == counts, (m.redelivery_count(), counts)
                if counts == 2:
                    consumer.acknowledge(m)
                else:
                    consumer.negative_acknowledge(m)
    nothing_more(consumers[0])
    nothing_more(consumers[1])


def shared_redeliver_all(client, server):
    producer = client.create_producer("all-again", batching_enabled=False)
    consumer = shared(client, "all-again")
    for i in range(10):
        producer.send(str(i).encode())
    first = receive_all(consumer, 10, ack=False)
    consumer.acknowledge(first[3])
    time.sleep(0.3)
    consumer.redeliver_unacknowledged_messages()
    assert [m.data() for m in receive_all(consumer, 9)] == \
        [str(i).encode() for i in range(10) if i != 3]
    nothing_more(consumer)


def shared_consumer_goes(client, server):
    """What a consumer held comes to the others: closed, and with its connection cut."""
    producer = client.create_producer("goes", batching_enabled=False)
    other = client_of(server)
    stays, closes, dies = shared(client, "goes"), shared(client, "goes"), shared(other, "goes")
    wanted = [str(i).encode() for i in range(300)]
    send_all(producer, wanted)
    got = drain([stays, closes, dies], 300, ack=False)
    for m in got[0]:
        stays.acknowledge(m)
    closes.close()
    other.shutdown()
    more = drain([stays], 300 - len(got[0]))[0]
    assert sorted(m.data() for m in got[0] + more) == sorted(wanted)
    nothing_more(stays)


def shared_ack_by_another(client, server):
    producer = client.create_producer("foreign", batching_enabled=False)
    a, b = shared(client, "foreign"), shared(client, "foreign")
    send_all(producer, [str(i).encode() for i in range(100)])
    got = drain([a, b], 100, ack=False)
    for m in got[0]:
        b.acknowledge(m)
    for m in got[1]:
        a.acknowledge(m)
    a.close()
    b.close()
    nothing_more(shared(client, "foreign"))


def batch_of(client, topic, n):
    """One entry with n messages."""
    producer = client.create_producer(topic, batching_enabled=True, batching_max_messages=n,
                                      batching_max_publish_delay_ms=2000)
    send_all(producer, [str(i).encode() for i in range(n)])
    producer.close()


def batch_index_acks(client, server):
    """Of a batch only what was not acknowledged comes again: closed, nacked, after a crash."""
    for kind in (pulsar.ConsumerType.Exclusive, SHARED):
        topic = f"indexes-{kind}"
        keep = {"consumer_type": kind, "batch_index_ack_enabled": True,
                "negative_ack_redelivery_delay_ms": 100}
        consumer = subscribe(client, topic, **keep)
        batch_of(client, topic, 100)
        got = receive_all(consumer, 100, ack=False)
        for m in got[::3]:
            consumer.acknowledge(m)
        left = [m.data() for i, m in enumerate(got) if i % 3]
        consumer.close()
        consumer = subscribe(client, topic, **keep)
        got = receive_all(consumer, len(left), ack=False)
        assert [m.data() for m in got] == left
        nothing_more(consumer, 200)
        consumer.acknowledge(got[0])
        time.sleep(0.5)
        consumer.close()
        server.kill()
        server.start()
        consumer = subscribe(client, topic, **keep)
        got = receive_all(consumer, len(left) - 1, ack=False)
        assert [m.data() for m in got] == left[1:]
        for m in got:
            consumer.acknowledge(m)
        consumer.close()
        nothing_more(subscribe(client, topic, **keep), 500)


def batch_index_cumulative(client, server):
    topic = "indexes-up-to"
    consumer = subscribe(client, topic, batch_index_ack_enabled=True)
    batch_of(client, topic, 10)
    batch_of(client, topic, 10)
    got = receive_all(consumer, 20, ack=False)
    consumer.acknowledge_cumulative(got[13])
    consumer.close()
    consumer = subscribe(client, topic, batch_index_ack_enabled=True)
    assert [m.data() for m in receive_all(consumer, 6)] == [str(i).encode() for i in range(4, 10)]
    nothing_more(consumer)


# ---- partitioned topics ----

def admin(server, method, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{server.web_port}/admin/v2{path}", method=method,
                                     data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.status, answer.read().decode()


def partitioned_in_turns(client, server):
    path = "/persistent/public/default/parts"
    assert admin(server, "PUT", path + "/partitions", 4)[0] == 204
    assert len(client.get_topic_partitions("parts")) == 4
    consumer = subscribe(client, "parts")
    producer = client.create_producer("parts", batching_enabled=False,
                                      message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution)
    wanted = {f"message {i}".encode() for i in range(400)}
    for payload in sorted(wanted):
        producer.send(payload)
    got = receive_all(consumer, 400)
    assert {m.data() for m in got} == wanted
    assert {m.message_id().partition() for m in got} == {0, 1, 2, 3}
    stats = json.loads(admin(server, "GET", path + "/partitioned-stats?perPartition=true")[1])
    assert len(stats["partitions"]) == 4 and stats["metadata"]["partitions"] == 4


def partitioned_by_key(client, server):
    admin(server, "PUT", "/persistent/public/default/keyed/partitions", 3)
    consumer = subscribe(client, "keyed")
    producer = client.create_producer("keyed", batching_enabled=False)
    for i in range(300):
        producer.send(str(i).encode(), partition_key=f"key-{i % 10}")
    of_key, order = {}, {}
    for m in receive_all(consumer, 300):
        assert of_key.setdefault(m.partition_key(), m.message_id().partition()) == m.message_id().partition()
        assert order.get(m.partition_key(), -1) < int(m.data())
        order[m.partition_key()] = int(m.data())
    assert len(of_key) == 10


def partitioned_on_first_use(client, server):
    admin(server, "POST", "/namespaces/public/default/autoTopicCreation",
          {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3})
    producer = client.create_producer("made")
    producer.send(b"x")
    assert len(client.get_topic_partitions("made")) == 3
    assert receive_all(subscribe(client, "made"), 1)[0].data() == b"x"


def partitioned_deleted_is_empty(client, server):
    path = "/persistent/public/default/gone/partitions"
    admin(server, "PUT", path, 2)
    producer = client.create_producer("gone")
    producer.send(b"old")
    producer.close()
    admin(server, "DELETE", path)
    admin(server, "PUT", path, 2)
    consumer = subscribe(client, "gone")
    client.create_producer("gone").send(b"new")
    assert receive_all(consumer, 1)[0].data() == b"new"
    nothing_more(consumer)


def terminated_topic(client, server):
    producer = client.create_producer("ended", batching_enabled=False)
    last = producer.send(b"one")
    consumer = subscribe(client, "ended")
    status, body = admin(server, "POST", "/persistent/public/default/ended/terminate")
    assert status == 200 and json.loads(body)["entryId"] == last.entry_id()
    refused(pulsar.TopicTerminated, lambda: client.create_producer("ended"))
    assert receive_all(consumer, 1)[0].data() == b"one"
    nothing_more(consumer)  # and its connection lives: it was sent nothing that it does not know
    client.create_producer("another").send(b"x")


def over_http(client, server):
    with_http = pulsar.Client(f"http://127.0.0.1:{server.web_port}",
                              logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    admin(server, "PUT", "/persistent/public/default/http/partitions", 2)
    producer = with_http.create_producer("http")
    producer.send(b"x")
    assert receive_all(subscribe(with_http, "http"), 1)[0].data() == b"x"
    with_http.close()


def access_modes(client, server):
    mode = pulsar.ProducerAccessMode

    def producer(who, access):
        return who.create_producer("alone", access_mode=access)
    second, third = client_of(server), client_of(server)
    first = producer(client, mode.Exclusive)
    refused(pulsar.ProducerFenced, lambda: producer(second, mode.Exclusive))
    refused(pulsar.ProducerBusy, lambda: producer(second, mode.Shared))
    waited = []
    thread = threading.Thread(target=lambda: waited.append(producer(second, mode.WaitForExclusive)))
    thread.start()
    first.send(b"first")
    thread.join(1)
    assert not waited, "two at a time"
    first.close()
    thread.join(30)
    waited[0].send(b"second")
    last = producer(third, mode.ExclusiveWithFencing)
    refused(pulsar.PulsarException, lambda: waited[0].send(b"fenced out"))
    last.send(b"third")
    assert [m.data() for m in receive_all(subscribe(client, "alone"), 3)] == [
        b"first", b"second", b"third"]
    second.close()
    third.close()


def unacked_limit(client, server):
    """A consumer that acknowledges nothing gets no more than the limit, and the rest after half."""
    producer = client.create_producer("limit", batching_enabled=False, block_if_queue_full=True)
    consumer = shared(client, "limit", receiver_queue_size=100)
    send_all(producer, [str(i).encode() for i in range(300)])
    got = receive_all(consumer, 100, ack=False)
    nothing_more(consumer)
    for m in got[:40]:
        consumer.acknowledge(m)
    nothing_more(consumer)
    for m in got[40:]:
        consumer.acknowledge(m)
    receive_all(consumer, 200)


def shared_type_conflicts(client, server):
    first = shared(client, "types")
    refused(pulsar.ConsumerBusy, lambda: subscribe(client, "types"))
    first.close()
    second = subscribe(client, "types")
    refused(pulsar.ConsumerBusy, lambda: shared(client, "types"))
    second.close()
    shared(client, "types").close()
    refused(pulsar.PulsarException, lambda: client.subscribe(
        "types", "sub", consumer_type=pulsar.ConsumerType.Failover))


def put_off_for_a_moment(client, server):
    """A producer that sends more than there is room for is closed and opens again by itself: each
    message is there once, in order; another one on the same connection goes on meanwhile."""
    n, size = 2500, 50000
    consumer = subscribe(client, "flood", receiver_queue_size=100)
    flood = client.create_producer("flood", batching_enabled=False, block_if_queue_full=True,
                                   max_pending_messages=1000, send_timeout_millis=0)
    calm = client.create_producer("calm", batching_enabled=False)
    results, lock = [], threading.Lock()

    def sent(result, _):
        with lock:
            results.append(result)
    slowest = 0
    for i in range(n):
        flood.send_async(b"%08d" % i + bytes(size - 8), sent)
        if i % 100 == 99:
            began = time.monotonic()
            calm.send(b"still here")
            slowest = max(slowest, time.monotonic() - began)
    flood.flush()
    lgm.wait_until(lambda: len(results) == n, 60, "all are answered")
    assert set(results) == {pulsar.Result.Ok}
    for i, m in enumerate(receive_all(consumer, n)):
        assert m.data()[:8] == b"%08d" % i, (i, m.data()[:8])
    assert not more(consumer)
    times = put_off_times(server)
    print(f"      put off {times} times; the other's slowest publish took {slowest:.2f} s")
    assert times > 0


def more(consumer):
    try:
        return consumer.receive(timeout_millis=300)
    except pulsar.Timeout:
        return None


def put_off_times(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.web_port}/metrics") as r:
        line = next(s for s in r.read().decode().splitlines() if s.startswith("lgm_producers_put_off_total"))
    return int(line.split()[-1])


def a_million_of_1_kib(client, server):
    n = ARGS.messages
    producer = client.create_producer("million", batching_enabled=True, block_if_queue_full=True,
                                      batching_max_messages=1000, batching_max_publish_delay_ms=10,
                                      batching_max_allowed_size_in_bytes=256 * 1024,
                                      max_pending_messages=5000, send_timeout_millis=0)
    consumer = subscribe(client, "million", receiver_queue_size=5000)
    filler = os.urandom(1024 - 16).hex().encode()[:1024 - 16]
    sent_sum, errors = hashlib.sha256(), []
    began = time.monotonic()

    def publish():
        for i in range(n):
            payload = b"%016d" % i + filler
            sent_sum.update(payload)
            producer.send_async(payload, lambda r, _: errors.append(r) if r != pulsar.Result.Ok else 0)
        producer.flush()
    thread = threading.Thread(target=publish)
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
    print(f"      {n} messages of 1 KiB published, consumed and compared in {seconds:.1f} s, "
          f"{n / seconds:.0f} a second")


FEATURES = (plain, batched, each_compression, keys_and_properties, chunked_20_mib,
            cumulative_ack_and_reconnect, single_acks_leave_the_rest, redelivery, nothing_comes_twice,
            unsubscribe_and_close, two_subscriptions_each_get_all, refusals_are_answers,
            survives_kill_9, shared_round_robin, shared_batches_and_chunks, shared_small_queue,
            shared_redelivery_counts, shared_redeliver_all, shared_consumer_goes,
            shared_ack_by_another, shared_type_conflicts, batch_index_acks, batch_index_cumulative,
            unacked_limit, access_modes, partitioned_in_turns, partitioned_by_key, partitioned_on_first_use,
            partitioned_deleted_is_empty, terminated_topic, over_http,
            put_off_for_a_moment, a_million_of_1_kib)


SETTINGS = {unacked_limit: {"args": ("--set", "maxUnackedMessagesPerConsumer=100")},
            put_off_for_a_moment: {"args": ("--set", "maxMessagePublishBufferSizeInMB=11")}}


def main():
    cases = lgm.Cases()
    for feature in (f for f in FEATURES if ARGS.only in f.__name__):
        def one(folder, feature=feature):
            server = lgm.Standalone(ARGS.build, folder, **SETTINGS.get(feature, {})).start()
            client = client_of(server)
            try:
                feature(client, server)
            finally:
                client.close()
                server.stop()
        cases.run(f"python {feature.__name__}", one)
    cases.end()


main()
