package main

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var reading = []feature{
	{name: "seek_by_id", show: seekByID},
	{name: "seek_in_batch", show: seekInBatch},
	{name: "seek_to_ends", show: seekToEnds},
	{name: "seek_by_time", show: seekByTime},
	{name: "last_message_id", show: lastMessageID},
	{name: "reader_earliest", show: readerEarliest},
	{name: "reader_latest", show: readerLatest},
	{name: "reader_from_id", show: readerFromID},
	{name: "reader_in_batch", show: readerInBatch},
	{name: "reader_has_message", show: readerHasMessage},
	{name: "reader_seek", show: readerSeek},
	{name: "reader_leaves_no_subscription", show: readerLeavesNoSubscription},
	{name: "table_view", show: tableView},
	{name: "multi_topic", show: multiTopic},
	{name: "pattern", show: pattern},
	{name: "pattern_topic_appears_later", show: patternTopicAppearsLater},
	{name: "non_persistent", show: nonPersistent},
}

func seekByID(w *world) {
	for _, kind := range bothTypes {
		topic := w.topic(fmt.Sprint(kind))
		ids := sendAll(w.producer(topic), numbered(0, 100))
		consumer := w.consumer(topic, ofType(kind), inclusive)
		receiveAndAck(consumer, 100)
		must(consumer.Seek(ids[40]))
		same(receiveAndAck(consumer, 60), numbered(40, 100))
		nothingMore(consumer)
		must(consumer.Seek(ids[95]))
		same(receiveAndAck(consumer, 5), numbered(95, 100))
		consumer.Close()
		nothingMore(w.consumer(topic, ofType(kind)))
	}
}

func seekInBatch(w *world) {
	w.sendBatch(w.topic("t"), numbered(0, 10))
	w.sendBatch(w.topic("t"), numbered(10, 20))
	consumer := w.consumer(w.topic("t"), inclusive)
	must(consumer.Seek(receive(consumer, 20)[13].ID()))
	same(receive(consumer, 7), numbered(13, 20))
}

func seekToEnds(w *world) {
	producer := w.producer(w.topic("t"))
	sendAll(producer, numbered(0, 50))
	consumer := w.consumer(w.topic("t"))
	must(consumer.Seek(pulsar.NewMessageID(math.MaxInt64, math.MaxInt64, -1, 0)))
	nothingMore(consumer)
	send(producer, numbered(50, 51))
	same(receiveAndAck(consumer, 1), numbered(50, 51))
	must(consumer.Seek(pulsar.NewMessageID(-1, -1, -1, 0)))
	same(receiveAndAck(consumer, 51), numbered(0, 51))
}

func seekByTime(w *world) {
	producer := w.producer(w.topic("t"))
	sendAll(producer, numbered(0, 50))
	time.Sleep(50 * time.Millisecond)
	between := time.Now()
	time.Sleep(50 * time.Millisecond)
	sendAll(producer, numbered(50, 100))
	consumer := w.consumer(w.topic("t"))
	receiveAndAck(consumer, 100)
	must(consumer.SeekByTime(between))
	same(receiveAndAck(consumer, 50), numbered(50, 100))
	must(consumer.SeekByTime(time.UnixMilli(1)))
	same(receiveAndAck(consumer, 100), numbered(0, 100))
}

func lastMessageID(w *world) {
	consumer := w.consumer(w.topic("t"))
	last := func() pulsar.TopicMessageID {
		all, err := consumer.GetLastMessageIDs()
		must(err)
		check(len(all) == 1, "%d topics", len(all))
		return all[0]
	}
	check(last().EntryID() == -1, "of an empty topic: %v", last())
	ids := sendAll(w.producer(w.topic("t")), numbered(0, 10))
	check(last().EntryID() == ids[9].EntryID(), "of singles: %v", last())
	w.sendBatch(w.topic("t"), numbered(10, 20))
	id := receiveAndAck(consumer, 20)[19].ID()
	check(last().EntryID() == id.EntryID() && last().BatchIdx() == id.BatchIdx(),
		"of a batch: %v, not %v", last(), id)
}

func readerEarliest(w *world) {
	producer := w.producer(w.topic("t"))
	sendAll(producer, numbered(0, 100))
	reader := w.reader(w.topic("t"), pulsar.EarliestMessageID(), false)
	second := w.reader(w.topic("t"), pulsar.EarliestMessageID(), false)
	same(read(reader, 100), numbered(0, 100))
	sendAll(producer, numbered(100, 3000))
	same(read(reader, 2900), numbered(100, 3000))
	same(read(second, 3000), numbered(0, 3000))
	nothingMoreToRead(reader)
}

func readerLatest(w *world) {
	producer := w.producer(w.topic("t"))
	sendAll(producer, numbered(0, 10))
	reader := w.reader(w.topic("t"), pulsar.LatestMessageID(), false)
	nothingMoreToRead(reader)
	sendAll(producer, numbered(10, 20))
	same(read(reader, 10), numbered(10, 20))
}

func readerFromID(w *world) {
	ids := sendAll(w.producer(w.topic("t")), numbered(0, 100))
	same(read(w.reader(w.topic("t"), ids[30], false), 69), numbered(31, 100))
	same(read(w.reader(w.topic("t"), ids[30], true), 70), numbered(30, 100))
	nothingMoreToRead(w.reader(w.topic("t"), ids[99], false))
}

func readerInBatch(w *world) {
	w.sendBatch(w.topic("t"), numbered(0, 10))
	w.sendBatch(w.topic("t"), numbered(10, 20))
	id := read(w.reader(w.topic("t"), pulsar.EarliestMessageID(), false), 20)[5].ID()
	same(read(w.reader(w.topic("t"), id, false), 14), numbered(6, 20))
	same(read(w.reader(w.topic("t"), id, true), 15), numbered(5, 20))
}

func readerHasMessage(w *world) {
	producer := w.producer(w.topic("t"))
	reader := w.reader(w.topic("t"), pulsar.EarliestMessageID(), false)
	check(!reader.HasNext(), "an empty topic has none")
	sendAll(producer, numbered(0, 10))
	w.sendBatch(w.topic("t"), numbered(10, 20))
	for i := range 20 {
		check(reader.HasNext(), "message %d is there", i)
		same(read(reader, 1), numbered(i, i+1))
	}
	check(!reader.HasNext(), "that was the last")
	send(producer, numbered(20, 21))
	check(reader.HasNext(), "a new one")
}

func readerSeek(w *world) {
	ids := sendAll(w.producer(w.topic("t")), numbered(0, 50))
	reader := w.reader(w.topic("t"), pulsar.EarliestMessageID(), true)
	read(reader, 50)
	must(reader.Seek(ids[20]))
	same(read(reader, 30), numbered(20, 50))
	must(reader.Seek(pulsar.NewMessageID(-1, -1, -1, 0)))
	same(read(reader, 50), numbered(0, 50))
}

func readerLeavesNoSubscription(w *world) {
	sendAll(w.producer(w.topic("t")), numbered(0, 10))
	reader := w.reader(w.topic("t"), pulsar.EarliestMessageID(), false)
	read(reader, 5)
	check(len(subscriptions(w, "t")) == 1, "while it reads: %v", subscriptions(w, "t"))
	reader.Close()
	soon("its subscription goes with it", func() bool { return len(subscriptions(w, "t")) == 0 })
}

func tableView(w *world) {
	producer := w.producer(w.topic("t"))
	var sent []*pulsar.ProducerMessage
	for i := range 100 {
		sent = append(sent, &pulsar.ProducerMessage{Key: fmt.Sprintf("key-%d", i%10),
			Payload: []byte(fmt.Sprintf("value %d", i))})
	}
	sendMessages(producer, sent)
	view, err := w.client.CreateTableView(pulsar.TableViewOptions{Topic: w.topic("t"),
		Schema: pulsar.NewStringSchema(nil), SchemaValueType: reflect.TypeOf(new(string))})
	must(err)
	defer view.Close()
	check(view.Size() == 10, "%d keys", view.Size())
	value := func() string { return *view.Get("key-3").(*string) }
	check(value() == "value 93", "key-3 is %s", value())
	sendMessages(producer, []*pulsar.ProducerMessage{{Key: "key-3", Payload: []byte("newest")}})
	soon("the view follows", func() bool { return value() == "newest" })
}

func multiTopic(w *world) {
	names := []string{w.topic("a"), w.topic("b"), w.topic("c")}
	admin("PUT", w.path("c")+"/partitions", 2)
	all := func(o *pulsar.ConsumerOptions) { o.Topics = names }
	consumer := w.consumer("", all)
	for i, topic := range names {
		send(w.producer(topic), numbered(20*i, 20*i+20))
	}
	sameInAnyOrder(receiveAndAck(consumer, 60), numbered(0, 60))
	nothingMore(consumer)
	consumer.Close()
	nothingMore(w.consumer("", all))
}

func (w *world) matching(period time.Duration) pulsar.Consumer {
	return w.consumer("", func(o *pulsar.ConsumerOptions) {
		o.TopicsPattern = w.fullTopic("match-.*")
		o.AutoDiscoveryPeriod = period
	})
}

func pattern(w *world) {
	for _, topic := range []string{"match-a", "match-b", "other"} {
		send(w.producer(w.topic(topic)), [][]byte{[]byte(topic)})
	}
	admin("PUT", w.path("match-c")+"/partitions", 3)
	send(w.producer(w.topic("match-c")), [][]byte{[]byte("match-c")})
	consumer := w.matching(time.Minute)
	sameInAnyOrder(receiveAndAck(consumer, 3), [][]byte{[]byte("match-a"), []byte("match-b"), []byte("match-c")})
	nothingMore(consumer)
}

// patternTopicAppearsLater: this client asks again and again.
func patternTopicAppearsLater(w *world) {
	send(w.producer(w.topic("match-a")), [][]byte{[]byte("first")})
	consumer := w.matching(time.Second)
	same(receiveAndAck(consumer, 1), [][]byte{[]byte("first")})
	send(w.producer(w.topic("match-b")), [][]byte{[]byte("later")})
	same(receiveAndAck(consumer, 1), [][]byte{[]byte("later")})
	nothingMore(consumer)
}

// nonPersistent: nothing is acknowledged. Such messages all have the same id, as Pulsar's have, and
// this client drops what has an id whose acknowledgement it has not sent yet.
func nonPersistent(w *world) {
	topic := "non-persistent://public/default/" + w.topic("t")
	send(w.producer(topic), numbered(0, 5)) // nobody listens: they are gone
	one, two := w.consumer(topic, sub("a")), w.consumer(topic, sub("b"), shared)
	send(w.producer(topic), numbered(5, 105))
	sendAll(w.producer(topic, batching), numbered(105, 205))
	same(receive(one, 200), numbered(5, 205))
	same(receive(two, 200), numbered(5, 205))
	nothingMore(one, two)
}
