package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var consuming = []feature{
	{name: "exclusive_second_is_busy", show: exclusiveSecondIsBusy},
	{name: "type_conflict_is_busy", show: typeConflictIsBusy},
	{name: "initial_positions", show: initialPositions},
	{name: "each_subscription_gets_all", show: eachSubscriptionGetsAll},
	{name: "shared_round_robin", show: sharedRoundRobin},
	{name: "shared_consumer_goes", show: sharedConsumerGoes},
	{name: "receiver_queue_one", show: receiverQueueOne},
	{name: "receiver_queue_zero", show: receiverQueueZero},
	{name: "message_listener", show: messageListener},
	{name: "subscription_properties", show: subscriptionProperties},
}

var acknowledging = []feature{
	{name: "ack_individual", show: ackIndividual},
	{name: "ack_cumulative", show: ackCumulative},
	{name: "ack_batch_index", show: ackBatchIndex},
	{name: "ack_batch_index_cumulative", show: ackBatchIndexCumulative},
	{name: "ack_receipts", show: ackReceipts},
	{name: "ack_list", show: ackList},
	{name: "ack_survives_restart", show: ackSurvivesRestart, restarts: true},
	{name: "unsubscribe", show: unsubscribe},
	{name: "unsubscribe_force", show: unsubscribeForce},
}

var redelivering = []feature{
	{name: "negative_ack", show: negativeAck},
	{name: "negative_ack_in_batch", show: negativeAckInBatch},
	{name: "redelivery_count", show: redeliveryCount},
	{name: "dead_letter_policy", show: deadLetterPolicy},
	{name: "dead_letter_initial_subscription", show: deadLetterSubscription},
	{name: "retry_topic", show: retryTopic},
	{name: "unacked_limit", show: unackedLimit},
}

var bothTypes = []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared}

func busy(client pulsar.Client, topic string, changes ...change) {
	refused("ConsumerBusy", func() error {
		_, err := tryConsumer(client, topic, changes...)
		return err
	})
}

func exclusiveSecondIsBusy(w *world) {
	first, other := w.consumer(w.topic("t")), w.anotherClient(options.url)
	busy(other, w.topic("t"))
	send(w.producer(w.topic("t")), numbered(0, 1))
	same(receiveAndAck(first, 1), numbered(0, 1))
	first.Close()
	nothingMore(consumerBy(other, w.topic("t")))
}

func typeConflictIsBusy(w *world) {
	first := w.consumer(w.topic("t"), shared)
	busy(w.client, w.topic("t"))
	first.Close()
	second := w.consumer(w.topic("t"))
	busy(w.client, w.topic("t"), shared)
	second.Close()
	w.consumer(w.topic("t"), shared)
}

func initialPositions(w *world) {
	producer := w.producer(w.topic("t"))
	send(producer, numbered(0, 5))
	earliest := w.consumer(w.topic("t"), sub("from the start"))
	latest := w.consumer(w.topic("t"), sub("from now on"), func(o *pulsar.ConsumerOptions) {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionLatest
	})
	send(producer, numbered(5, 10))
	same(receiveAndAck(earliest, 10), numbered(0, 10))
	same(receiveAndAck(latest, 5), numbered(5, 10))
	latest.Close()
	nothingMore(earliest, w.consumer(w.topic("t"), sub("from now on")))
}

func eachSubscriptionGetsAll(w *world) {
	a, b := w.consumer(w.topic("t"), sub("a")), w.consumer(w.topic("t"), sub("b"))
	sendAll(w.producer(w.topic("t"), batching), numbered(0, 1000))
	same(receiveAndAck(a, 1000), numbered(0, 1000))
	same(receiveAndAck(b, 1000), numbered(0, 1000))
}

func flat(lists [][]pulsar.Message) []pulsar.Message {
	var all []pulsar.Message
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func sharedRoundRobin(w *world) {
	var consumers []pulsar.Consumer
	for range 4 {
		consumers = append(consumers, w.consumer(w.topic("t"), shared, queue(50)))
	}
	go sendAll(w.producer(w.topic("t")), numbered(0, 2000))
	got := drain(consumers, 2000, true)
	sameInAnyOrder(flat(got), numbered(0, 2000))
	for _, mine := range got {
		check(len(mine) > 200, "one gets only %d", len(mine))
	}
	nothingMore(consumers...)
}

func sharedConsumerGoes(w *world) {
	other := w.anotherClient(options.url)
	stays, closes := w.consumer(w.topic("t"), shared), w.consumer(w.topic("t"), shared)
	dies := consumerBy(other, w.topic("t"), shared)
	sendAll(w.producer(w.topic("t")), numbered(0, 300))
	got := drain([]pulsar.Consumer{stays, closes, dies}, 300, false)
	for _, m := range got[0] {
		must(stays.Ack(m))
	}
	closes.Close()
	other.Close()
	all := append(got[0], receiveAndAck(stays, 300-len(got[0]))...)
	sameInAnyOrder(all, numbered(0, 300))
	nothingMore(stays)
}

func receiverQueueOne(w *world) {
	one := w.consumer(w.topic("t"), queue(1))
	sendAll(w.producer(w.topic("t")), numbered(0, 200))
	sendAll(w.producer(w.topic("t"), batching), numbered(200, 400))
	same(receiveAndAck(one, 400), numbered(0, 400))
	nothingMore(one)
}

func receiverQueueZero(w *world) {
	none := func(o *pulsar.ConsumerOptions) { o.EnableZeroQueueConsumer = true }
	zero, other := w.consumer(w.topic("t"), shared, none), w.consumer(w.topic("t"), shared, none)
	sendAll(w.producer(w.topic("t")), numbered(0, 50))
	got := receive(zero, 1) // and keeps none of the rest
	got = append(got, receiveAndAck(other, 49)...)
	must(zero.Ack(got[0]))
	same(got, numbered(0, 50))
}

func messageListener(w *world) {
	channel := make(chan pulsar.ConsumerMessage, 100)
	consumer := w.consumer(w.topic("t"), func(o *pulsar.ConsumerOptions) { o.MessageChannel = channel })
	sendAll(w.producer(w.topic("t"), batching), numbered(0, 500))
	var got []pulsar.Message
	for len(got) < 500 {
		select {
		case m := <-channel:
			got = append(got, m.Message)
			must(m.Ack(m.Message))
		case <-time.After(20 * time.Second):
			panic(fmt.Sprintf("only %d of 500 messages", len(got)))
		}
	}
	same(got, numbered(0, 500))
	consumer.Close()
	nothingMore(w.consumer(w.topic("t")))
}

func subscriptionProperties(w *world) {
	w.consumer(w.topic("t"), func(o *pulsar.ConsumerOptions) {
		o.SubscriptionProperties = map[string]string{"team": "blue"}
	})
	text := admin("GET", w.path("t")+"/subscription/sub/properties", nil)
	check(strings.Contains(text, `"team"`) && strings.Contains(text, `"blue"`), "properties: %s", text)
}

// ---- acknowledging ----

// ackSome acknowledges the messages with these numbers and gives the payloads of the rest.
func ackSome(consumer pulsar.Consumer, got []pulsar.Message, wanted func(int) bool) [][]byte {
	var left [][]byte
	for _, m := range got {
		if wanted(number(m)) {
			must(consumer.Ack(m))
		} else {
			left = append(left, m.Payload())
		}
	}
	return left
}

func everyThird(n int) bool { return n%3 == 0 }

func leftAgain(w *world, topic string, left [][]byte, changes ...change) {
	consumer := w.consumer(topic, changes...)
	same(receiveAndAck(consumer, len(left)), left)
	nothingMore(consumer)
}

func ackIndividual(w *world) {
	sendAll(w.producer(w.topic("t")), numbered(0, 100))
	consumer := w.consumer(w.topic("t"))
	left := ackSome(consumer, receive(consumer, 100), everyThird)
	consumer.Close()
	leftAgain(w, w.topic("t"), left)
}

func ackCumulative(w *world) {
	sendAll(w.producer(w.topic("t")), numbered(0, 100))
	consumer := w.consumer(w.topic("t"))
	must(consumer.AckCumulative(receive(consumer, 100)[59]))
	consumer.Close()
	leftAgain(w, w.topic("t"), numbered(60, 100))
}

func ackBatchIndex(w *world) {
	for _, kind := range bothTypes {
		topic := w.topic(fmt.Sprint(kind))
		consumer := w.consumer(topic, ofType(kind), indexes)
		w.sendBatch(topic, numbered(0, 100))
		left := ackSome(consumer, receive(consumer, 100), everyThird)
		consumer.Close()
		leftAgain(w, topic, left, ofType(kind), indexes)
	}
}

func ackBatchIndexCumulative(w *world) {
	consumer := w.consumer(w.topic("t"), indexes)
	w.sendBatch(w.topic("t"), numbered(0, 10))
	w.sendBatch(w.topic("t"), numbered(10, 20))
	must(consumer.AckCumulative(receive(consumer, 20)[13]))
	consumer.Close()
	leftAgain(w, w.topic("t"), numbered(14, 20), indexes)
}

func ackReceipts(w *world) {
	dies := w.anotherClient(options.url)
	consumer := consumerBy(dies, w.topic("t"), receipts)
	sendAll(w.producer(w.topic("t")), numbered(0, 100))
	for _, m := range receive(consumer, 100)[:90] {
		must(consumer.Ack(m))
	}
	dies.Close()
	next := w.consumer(w.topic("t"), receipts)
	got := receive(next, 10)
	same(got, numbered(90, 100))
	must(next.AckCumulative(got[9]))
	nothingMore(next)
}

func ackList(w *world) {
	consumer := w.consumer(w.topic("t"), receipts)
	sendAll(w.producer(w.topic("t")), numbered(0, 100))
	var ids []pulsar.MessageID
	var left [][]byte
	for _, m := range receive(consumer, 100) {
		if number(m)%2 == 0 {
			ids = append(ids, m.ID())
		} else {
			left = append(left, m.Payload())
		}
	}
	must(consumer.AckIDList(ids))
	consumer.Close()
	leftAgain(w, w.topic("t"), left)
}

func ackSurvivesRestart(w *world) {
	consumer := w.consumer(w.topic("t"), indexes, receipts)
	w.sendBatch(w.topic("t"), numbered(0, 100))
	sendAll(w.producer(w.topic("t")), numbered(100, 200))
	left := ackSome(consumer, receive(consumer, 200), everyThird)
	consumer.Close()
	restart()
	leftAgain(w, w.topic("t"), left, indexes)
}

func subscriptions(w *world, suffix string) []string {
	status, text := ask("GET", w.path(suffix)+"/subscriptions", nil)
	if status != 200 {
		return nil
	}
	var names []string
	must(json.Unmarshal([]byte(text), &names))
	return names
}

func unsubscribe(w *world) {
	send(w.producer(w.topic("t")), numbered(0, 1))
	consumer := w.consumer(w.topic("t"))
	receive(consumer, 1)
	must(consumer.Unsubscribe())
	check(len(subscriptions(w, "t")) == 0, "subscriptions: %v", subscriptions(w, "t"))
	same(receiveAndAck(w.consumer(w.topic("t")), 1), numbered(0, 1)) // a new one, from the start
}

func unsubscribeForce(w *world) {
	one, other := w.consumer(w.topic("t"), shared), consumerBy(w.anotherClient(options.url), w.topic("t"), shared)
	sendAll(w.producer(w.topic("t")), numbered(0, 10))
	drain([]pulsar.Consumer{one, other}, 10, true)
	time.Sleep(500 * time.Millisecond) // the client groups acknowledgements, and may bring them late
	check(one.Unsubscribe() != nil, "the other one is thrown out")
	must(one.UnsubscribeForce())
	// The other comes back by itself, to a new subscription: everything is there again.
	same(receiveAndAck(other, 10), numbered(0, 10))
}

// ---- redelivering ----

func ackBelowTen(consumer pulsar.Consumer, got []pulsar.Message) {
	for _, m := range got {
		if number(m) < 10 {
			must(consumer.Ack(m))
		} else {
			consumer.Nack(m)
		}
	}
}

func negativeAck(w *world) {
	for _, kind := range bothTypes {
		topic := w.topic(fmt.Sprint(kind))
		consumer := w.consumer(topic, ofType(kind), quickly, receipts)
		sendAll(w.producer(topic), numbered(0, 20))
		ackBelowTen(consumer, receive(consumer, 20))
		sameInAnyOrder(receiveAndAck(consumer, 10), numbered(10, 20))
		nothingMore(consumer)
	}
}

func negativeAckInBatch(w *world) {
	consumer := w.consumer(w.topic("t"), shared, quickly, indexes, receipts)
	w.sendBatch(w.topic("t"), numbered(0, 20))
	ackBelowTen(consumer, receive(consumer, 20))
	same(receiveAndAck(consumer, 10), numbered(10, 20))
	nothingMore(consumer)
}

func redeliveryCount(w *world) {
	consumers := []pulsar.Consumer{w.consumer(w.topic("t"), shared, quickly),
		w.consumer(w.topic("t"), shared, quickly)}
	sendAll(w.producer(w.topic("t")), numbered(0, 20))
	for count := range uint32(4) {
		for i, mine := range drain(consumers, 20, false) {
			for _, m := range mine {
				check(m.RedeliveryCount() == count, "count %d, not %d", m.RedeliveryCount(), count)
				if count == 3 {
					must(consumers[i].Ack(m))
				} else {
					consumers[i].Nack(m)
				}
			}
		}
	}
	nothingMore(consumers...)
}

func deadLetters(policy pulsar.DLQPolicy) change {
	return func(o *pulsar.ConsumerOptions) { o.DLQ = &policy }
}

func nackAll(consumer pulsar.Consumer, times int) {
	for range times {
		consumer.Nack(receive(consumer, 1)[0])
	}
}

func deadLetterPolicy(w *world) {
	dead := w.consumer(w.topic("dead"))
	consumer := w.consumer(w.topic("t"), shared, quickly,
		deadLetters(pulsar.DLQPolicy{MaxDeliveries: 3, DeadLetterTopic: w.fullTopic("dead")}))
	sendAll(w.producer(w.topic("t")), numbered(0, 10))
	nackAll(consumer, 30)
	got := receiveAndAck(dead, 10)
	sameInAnyOrder(got, numbered(0, 10))
	for _, m := range got {
		check(m.Properties()["REAL_TOPIC"] == w.fullTopic("t"), "it came from %v", m.Properties())
	}
	nothingMore(consumer, dead)
}

func deadLetterSubscription(w *world) {
	consumer := w.consumer(w.topic("t"), shared, quickly, deadLetters(pulsar.DLQPolicy{MaxDeliveries: 2,
		DeadLetterTopic: w.fullTopic("dead"), InitialSubscriptionName: "kept"}))
	sendAll(w.producer(w.topic("t")), numbered(0, 5))
	nackAll(consumer, 10)
	soon("the subscription is made with the producer", func() bool {
		return len(subscriptions(w, "dead")) == 1
	})
	dead := w.consumer(w.topic("dead"), sub("kept"), func(o *pulsar.ConsumerOptions) {
		o.SubscriptionInitialPosition = pulsar.SubscriptionPositionLatest
	})
	sameInAnyOrder(receiveAndAck(dead, 5), numbered(0, 5))
}

func retryTopic(w *world) {
	dead := w.consumer(w.topic("dead"))
	consumer := w.consumer(w.topic("t"), shared, quickly, deadLetters(pulsar.DLQPolicy{MaxDeliveries: 2,
		DeadLetterTopic: w.fullTopic("dead"), RetryLetterTopic: w.fullTopic("retry")}),
		func(o *pulsar.ConsumerOptions) { o.RetryEnable = true })
	sendAll(w.producer(w.topic("t")), numbered(0, 5))
	for tries := range 3 {
		for _, m := range receive(consumer, 5) {
			check(tries == 0 || m.Properties()["RECONSUMETIMES"] == fmt.Sprint(tries),
				"try %d: %v", tries, m.Properties())
			consumer.ReconsumeLater(m, 100*time.Millisecond)
		}
	}
	sameInAnyOrder(receiveAndAck(dead, 5), numbered(0, 5))
	nothingMore(consumer, dead)
}

// unackedLimit: who acknowledges nothing gets no more than the limit, and goes on after half of it.
func unackedLimit(w *world) {
	limit := options.unackedLimit
	consumer := w.consumer(w.topic("t"), shared, queue(100))
	sendAll(w.producer(w.topic("t")), numbered(0, 2*limit))
	got := receive(consumer, limit)
	nothingMore(consumer)
	for _, m := range got[:limit/4] {
		must(consumer.Ack(m))
	}
	nothingMore(consumer)
	for _, m := range got[limit/4:] {
		must(consumer.Ack(m))
	}
	sameInAnyOrder(append(got, receiveAndAck(consumer, limit)...), numbered(0, 2*limit))
}
