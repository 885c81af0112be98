package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var producing = []feature{
	{name: "produce_and_consume", show: produceAndConsume},
	{name: "async_without_batching", show: asyncWithoutBatching},
	{name: "async_with_batching", show: asyncWithBatching},
	{name: "compression_lz4", show: func(w *world) { compressed(w, pulsar.LZ4) }},
	{name: "compression_zlib", show: func(w *world) { compressed(w, pulsar.ZLib) }},
	{name: "compression_zstd", show: func(w *world) { compressed(w, pulsar.ZSTD) }},
	{name: "compression_snappy", show: func(w *world) { compressed(w, pulsar.SNAPPY) }},
	{name: "chunked_large_messages", show: chunkedLargeMessages},
	{name: "keys_and_properties", show: keysAndProperties},
	{name: "too_large_is_refused", show: tooLargeIsRefused},
	{name: "producer_name_conflict", show: producerNameConflict},
	{name: "generated_names", show: generatedNames},
	{name: "access_shared", show: accessShared},
	{name: "access_exclusive", show: accessExclusive},
	{name: "access_wait_for_exclusive", show: accessWaitForExclusive},
}

func produceAndConsume(w *world) {
	consumer, producer := w.consumer(w.topic("t")), w.producer(w.topic("t"))
	wanted := mixed(500)
	ids := send(producer, wanted)
	got := receiveAndAck(consumer, 500)
	same(got, wanted)
	sameIDs(got, ids)
	check(producer.LastSequenceID() == 499, "last sequence id: %d", producer.LastSequenceID())
	nothingMore(consumer)
}

func sameIDs(got []pulsar.Message, ids []pulsar.MessageID) {
	for i, id := range ids {
		is := got[i].ID()
		check(is.LedgerID() == id.LedgerID() && is.EntryID() == id.EntryID() &&
			is.BatchIdx() == id.BatchIdx(), "message %d has the id %v, not %v", i, is, id)
	}
}

func asyncWithoutBatching(w *world) {
	consumer := w.consumer(w.topic("t"))
	wanted := mixed(3000)
	ids := sendAll(w.producer(w.topic("t")), wanted)
	got := receiveAndAck(consumer, 3000)
	same(got, wanted)
	sameIDs(got, ids)
}

func asyncWithBatching(w *world) {
	consumer := w.consumer(w.topic("t"))
	ids := sendAll(w.producer(w.topic("t"), batching), numbered(0, 20000))
	got := receiveAndAck(consumer, 20000)
	same(got, numbered(0, 20000))
	batches := false
	for i := range ids {
		batches = batches || ids[i].BatchIdx() > 0
	}
	check(batches, "there were batches")
	nothingMore(consumer)
}

func compressed(w *world, kind pulsar.CompressionType) {
	for _, disable := range []bool{true, false} {
		topic := w.topic(fmt.Sprint(disable))
		var wanted [][]byte
		for i := 1; i <= 200; i++ {
			wanted = append(wanted, bytes.Repeat([]byte(fmt.Sprintf("%d and the same again ", i)), i*3))
		}
		sendAll(w.producer(topic, func(o *pulsar.ProducerOptions) {
			o.CompressionType, o.DisableBatching = kind, disable
		}), wanted)
		same(receiveAndAck(w.consumer(topic), 200), wanted)
	}
}

func chunkedLargeMessages(w *world) {
	consumer := w.consumer(w.topic("t"))
	producer := w.producer(w.topic("t"), func(o *pulsar.ProducerOptions) { o.EnableChunking = true })
	dice := rand.New(rand.NewSource(1))
	wanted := [][]byte{random(dice, 12<<20), []byte("small"), random(dice, 20<<20+1)}
	send(producer, wanted)
	same(receiveAndAck(consumer, 3), wanted)
	nothingMore(consumer)
}

func keysAndProperties(w *world) {
	for _, disable := range []bool{true, false} {
		topic := w.topic(fmt.Sprint(disable))
		var sent []*pulsar.ProducerMessage
		for i := range 50 {
			sent = append(sent, &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("v%d", i)),
				Key: fmt.Sprintf("key-%d", i), OrderingKey: fmt.Sprintf("order-%d", i),
				Properties: map[string]string{"n": fmt.Sprint(i), "of": "50", "snow": "☃"},
				EventTime:  time.UnixMilli(int64(1000 + i))})
		}
		sent = append(sent, &pulsar.ProducerMessage{Payload: []byte("bare")})
		producer := w.producer(topic, func(o *pulsar.ProducerOptions) { o.DisableBatching = disable })
		sendMessages(producer, sent)
		for i, m := range receiveAndAck(w.consumer(topic), 51) {
			check(bytes.Equal(m.Payload(), sent[i].Payload) && m.Key() == sent[i].Key, "message %d", i)
			check(m.OrderingKey() == sent[i].OrderingKey, "ordering key %q", m.OrderingKey())
			check(maps.Equal(m.Properties(), sent[i].Properties), "properties %v", m.Properties())
			check(i == 50 || m.EventTime().Equal(sent[i].EventTime), "event time %v", m.EventTime())
			check(m.ProducerName() == producer.Name(), "producer %q", m.ProducerName())
			check(time.Since(m.PublishTime()).Abs() < time.Minute, "publish time %v", m.PublishTime())
		}
	}
}

func tooLargeIsRefused(w *world) {
	consumer, producer := w.consumer(w.topic("t")), w.producer(w.topic("t"))
	_, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: make([]byte, 5<<20+1)})
	check(err != nil, "it is taken")
	largest := random(rand.New(rand.NewSource(2)), 5<<20-1024)
	send(producer, [][]byte{largest})
	same(receiveAndAck(consumer, 1), [][]byte{largest})
}

func named(name string) func(*pulsar.ProducerOptions) {
	return func(o *pulsar.ProducerOptions) { o.Name = name }
}

func producerNameConflict(w *world) {
	first, other := w.producer(w.topic("t"), named("me")), w.anotherClient(options.url)
	refused("ProducerBusy", func() error {
		_, err := tryProducer(other, w.topic("t"), named("me"))
		return err
	})
	send(first, numbered(0, 1))
	first.Close()
	send(producerBy(other, w.topic("t"), named("me")), numbered(1, 2))
}

func generatedNames(w *world) {
	names := map[string]bool{}
	for range 10 {
		name := w.producer(w.topic("t")).Name()
		check(name != "" && !names[name], "%q is no new name", name)
		names[name] = true
	}
}

func access(mode pulsar.ProducerAccessMode) func(*pulsar.ProducerOptions) {
	return func(o *pulsar.ProducerOptions) { o.ProducerAccessMode = mode }
}

func refusedAccess(client pulsar.Client, topic string, mode pulsar.ProducerAccessMode, why string) {
	refused(why, func() error {
		_, err := tryProducer(client, topic, access(mode))
		return err
	})
}

func accessShared(w *world) {
	one, two := w.producer(w.topic("t")), producerBy(w.anotherClient(options.url), w.topic("t"))
	send(one, numbered(1, 2))
	send(two, numbered(2, 3))
	refusedAccess(w.client, w.topic("t"), pulsar.ProducerAccessModeExclusive, "ProducerFenced")
	send(one, numbered(3, 4))
	same(receiveAndAck(w.consumer(w.topic("t")), 3), numbered(1, 4))
}

func accessExclusive(w *world) {
	second := w.anotherClient(options.url)
	first := w.producer(w.topic("t"), access(pulsar.ProducerAccessModeExclusive))
	refusedAccess(second, w.topic("t"), pulsar.ProducerAccessModeExclusive, "ProducerFenced")
	refusedAccess(second, w.topic("t"), pulsar.ProducerAccessModeShared, "ProducerBusy")
	send(first, numbered(0, 1))
	first.Close()
	send(producerBy(second, w.topic("t"), access(pulsar.ProducerAccessModeExclusive)), numbered(1, 2))
	same(receiveAndAck(w.consumer(w.topic("t")), 2), numbered(0, 2))
}

func accessWaitForExclusive(w *world) {
	second, waited := w.anotherClient(options.url), make(chan pulsar.Producer, 1)
	first := w.producer(w.topic("t"), access(pulsar.ProducerAccessModeExclusive))
	go func() {
		producer, _ := tryProducer(second, w.topic("t"), access(pulsar.ProducerAccessModeWaitForExclusive))
		waited <- producer
	}()
	send(first, numbered(0, 1))
	time.Sleep(500 * time.Millisecond)
	check(len(waited) == 0, "one at a time")
	send(first, numbered(1, 2))
	first.Close()
	select {
	case producer := <-waited:
		check(producer != nil, "it is refused")
		send(producer, numbered(2, 3))
	case <-time.After(20 * time.Second):
		panic("it still waits")
	}
	same(receiveAndAck(w.consumer(w.topic("t")), 3), numbered(0, 3))
}
