package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
)

// A world is what a feature works with: clients that are closed after it, and topics that nobody
// else uses.
type world struct {
	name    string
	client  pulsar.Client
	clients []pulsar.Client
}

func newWorld(name string) *world {
	w := &world{name: "go-" + strings.ReplaceAll(name, "_", "-")}
	w.client = w.anotherClient(options.url)
	return w
}

func (w *world) close() {
	for _, client := range w.clients {
		client.Close()
	}
}

func (w *world) anotherClient(url string) pulsar.Client {
	return w.clientWith(pulsar.ClientOptions{URL: url, OperationTimeout: 30 * time.Second})
}

func (w *world) clientWith(o pulsar.ClientOptions) pulsar.Client {
	level := slog.LevelDebug
	if !options.debug {
		level = slog.LevelError + 1
	}
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	o.Logger = log.NewLoggerWithSlog(slog.New(handler))
	client, err := pulsar.NewClient(o)
	must(err)
	w.clients = append(w.clients, client)
	return client
}

// topic is a short name in public/default.
func (w *world) topic(suffix string) string {
	return w.name + "-" + suffix
}

func (w *world) fullTopic(suffix string) string {
	return "persistent://public/default/" + w.topic(suffix)
}

func (w *world) path(suffix string) string {
	return "/persistent/public/default/" + w.topic(suffix)
}

// admin asks for something over HTTP; an answer that is no success is a failure.
func admin(method, path string, body any) string {
	status, text := ask(method, path, body)
	check(status < 300, "%s %s: %d %s", method, path, status, text)
	return text
}

func ask(method, path string, body any) (int, string) {
	var sent io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		must(err)
		sent = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, options.webURL+"/admin/v2"+path, sent)
	must(err)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(err)
	return answer.StatusCode, string(text)
}

// ---- what must hold ----

func check(holds bool, format string, args ...any) {
	if !holds {
		panic(fmt.Sprintf(format, args...))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// refused: there is an error that says this, and soon: an answer by the broker, not a timeout.
func refused(wanted string, action func() error) {
	began := time.Now()
	err := action()
	check(err != nil, "no %s", wanted)
	check(strings.Contains(err.Error(), wanted), "%v instead of %s", err, wanted)
	check(time.Since(began) < 20*time.Second, "refused by a timeout: %v", err)
}

func soon(what string, condition func() bool) {
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		check(time.Now().Before(end), "not within 30 s: %s", what)
	}
}

// ---- messages ----

// numbered is "message from", ..., "message to-1".
func numbered(from, to int) [][]byte {
	var all [][]byte
	for i := from; i < to; i++ {
		all = append(all, []byte(fmt.Sprintf("message %d", i)))
	}
	return all
}

var digits = regexp.MustCompile(`\d+`)

func number(m pulsar.Message) int {
	n, err := strconv.Atoi(string(digits.Find(m.Payload())))
	must(err)
	return n
}

// mixed are payloads of any bytes and many lengths; this client drops empty ones when it gets them.
func mixed(n int) [][]byte {
	dice := rand.New(rand.NewSource(int64(n)))
	var all [][]byte
	for i := 0; i < n; i++ {
		all = append(all, random(dice, 1+i*37%4099))
	}
	return all
}

func random(dice *rand.Rand, length int) []byte {
	payload := make([]byte, length)
	dice.Read(payload)
	return payload
}

func shown(payload []byte) string {
	if len(payload) > 40 {
		return fmt.Sprintf("%q... of %d", payload[:40], len(payload))
	}
	return fmt.Sprintf("%q", payload)
}

// same: the same bytes in the same order.
func same(got []pulsar.Message, wanted [][]byte) {
	check(len(got) == len(wanted), "%d messages, not %d", len(got), len(wanted))
	for i := range got {
		check(bytes.Equal(got[i].Payload(), wanted[i]), "message %d is %s, not %s", i,
			shown(got[i].Payload()), shown(wanted[i]))
	}
}

// sameInAnyOrder: the same bytes as often.
func sameInAnyOrder(got []pulsar.Message, wanted [][]byte) {
	got, wanted = slices.Clone(got), slices.Clone(wanted)
	slices.SortFunc(got, func(a, b pulsar.Message) int { return bytes.Compare(a.Payload(), b.Payload()) })
	slices.SortFunc(wanted, bytes.Compare)
	same(got, wanted)
}

// ---- producers ----

// producer sends each message in an entry of its own, and at once, unless it is told otherwise.
func (w *world) producer(topic string, change ...func(*pulsar.ProducerOptions)) pulsar.Producer {
	return producerBy(w.client, topic, change...)
}

func producerBy(client pulsar.Client, topic string, change ...func(*pulsar.ProducerOptions)) pulsar.Producer {
	producer, err := tryProducer(client, topic, change...)
	must(err)
	return producer
}

func tryProducer(client pulsar.Client, topic string, change ...func(*pulsar.ProducerOptions)) (pulsar.Producer, error) {
	o := pulsar.ProducerOptions{Topic: topic, DisableBatching: true}
	for _, f := range change {
		f(&o)
	}
	return client.CreateProducer(o)
}

func batching(o *pulsar.ProducerOptions) {
	o.DisableBatching = false
	o.BatchingMaxPublishDelay = 5 * time.Millisecond
}

func send(producer pulsar.Producer, payloads [][]byte) []pulsar.MessageID {
	var ids []pulsar.MessageID
	for _, payload := range payloads {
		id, err := producer.Send(context.Background(), &pulsar.ProducerMessage{Payload: payload})
		must(err)
		ids = append(ids, id)
	}
	return ids
}

// sendAll does not wait for each; it gives their ids.
func sendAll(producer pulsar.Producer, payloads [][]byte) []pulsar.MessageID {
	var all []*pulsar.ProducerMessage
	for _, payload := range payloads {
		all = append(all, &pulsar.ProducerMessage{Payload: payload})
	}
	return sendMessages(producer, all)
}

func sendMessages(producer pulsar.Producer, messages []*pulsar.ProducerMessage) []pulsar.MessageID {
	ids, errs := make([]pulsar.MessageID, len(messages)), make([]error, len(messages))
	var waiting sync.WaitGroup
	waiting.Add(len(messages))
	for i, message := range messages {
		producer.SendAsync(context.Background(), message,
			func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				ids[i], errs[i] = id, err
				waiting.Done()
			})
	}
	must(producer.Flush())
	waiting.Wait()
	for _, err := range errs {
		must(err)
	}
	return ids
}

// sendBatch sends all of them in one entry.
func (w *world) sendBatch(topic string, payloads [][]byte) {
	producer := w.producer(topic, func(o *pulsar.ProducerOptions) {
		o.DisableBatching = false
		o.BatchingMaxMessages = uint(len(payloads))
		o.BatchingMaxPublishDelay = 10 * time.Second
	})
	sendAll(producer, payloads)
	producer.Close()
}

// ---- consumers ----

type change = func(*pulsar.ConsumerOptions)

// consumer is on the subscription "sub", from the beginning on, unless it is told otherwise.
func (w *world) consumer(topic string, changes ...change) pulsar.Consumer {
	return consumerBy(w.client, topic, changes...)
}

func consumerBy(client pulsar.Client, topic string, changes ...change) pulsar.Consumer {
	consumer, err := tryConsumer(client, topic, changes...)
	must(err)
	return consumer
}

func tryConsumer(client pulsar.Client, topic string, changes ...change) (pulsar.Consumer, error) {
	o := pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "sub",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest}
	for _, f := range changes {
		f(&o)
	}
	return client.Subscribe(o)
}

func shared(o *pulsar.ConsumerOptions)    { o.Type = pulsar.Shared }
func inclusive(o *pulsar.ConsumerOptions) { o.StartMessageIDInclusive = true }
func indexes(o *pulsar.ConsumerOptions)   { o.EnableBatchIndexAcknowledgment = true }
func receipts(o *pulsar.ConsumerOptions)  { o.AckWithResponse = true }
func quickly(o *pulsar.ConsumerOptions)   { o.NackRedeliveryDelay = 100 * time.Millisecond }

func sub(name string) change {
	return func(o *pulsar.ConsumerOptions) { o.SubscriptionName = name }
}

func queue(size int) change {
	return func(o *pulsar.ConsumerOptions) { o.ReceiverQueueSize = size }
}

func ofType(t pulsar.SubscriptionType) change {
	return func(o *pulsar.ConsumerOptions) { o.Type = t }
}

// within gives nil when no message comes in time.
func within(consumer pulsar.Consumer, limit time.Duration) pulsar.Message {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	message, err := consumer.Receive(ctx)
	if ctx.Err() != nil && err != nil {
		return nil
	}
	must(err)
	return message
}

func receive(consumer pulsar.Consumer, n int) []pulsar.Message {
	var got []pulsar.Message
	for len(got) < n {
		message := within(consumer, 20*time.Second)
		check(message != nil, "only %d of %d messages", len(got), n)
		got = append(got, message)
	}
	return got
}

func receiveAndAck(consumer pulsar.Consumer, n int) []pulsar.Message {
	var got []pulsar.Message
	for len(got) < n {
		message := within(consumer, 20*time.Second)
		check(message != nil, "only %d of %d messages", len(got), n)
		must(consumer.Ack(message))
		got = append(got, message)
	}
	return got
}

// drain gets n messages from whichever has some: a list for each consumer.
func drain(consumers []pulsar.Consumer, n int, ack bool) [][]pulsar.Message {
	got := make([][]pulsar.Message, len(consumers))
	end := time.Now().Add(40 * time.Second)
	for total := 0; total < n; {
		check(time.Now().Before(end), "only %d of %d messages", total, n)
		for i, consumer := range consumers {
			message := within(consumer, 10*time.Millisecond)
			if message == nil || total == n {
				continue
			}
			total++
			got[i] = append(got[i], message)
			if ack {
				must(consumer.Ack(message))
			}
		}
	}
	return got
}

func nothingMore(consumers ...pulsar.Consumer) {
	for _, consumer := range consumers {
		if message := within(consumer, 400*time.Millisecond); message != nil {
			panic("one more: " + shown(message.Payload()))
		}
	}
}

// ---- readers ----

func (w *world) reader(topic string, start pulsar.MessageID, inclusive bool) pulsar.Reader {
	reader, err := w.client.CreateReader(pulsar.ReaderOptions{Topic: topic, StartMessageID: start,
		StartMessageIDInclusive: inclusive})
	must(err)
	return reader
}

func read(reader pulsar.Reader, n int) []pulsar.Message {
	var got []pulsar.Message
	for len(got) < n {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		message, err := reader.Next(ctx)
		cancel()
		check(err == nil, "only %d of %d messages: %v", len(got), n, err)
		got = append(got, message)
	}
	return got
}

func nothingMoreToRead(reader pulsar.Reader) {
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	if message, err := reader.Next(ctx); err == nil {
		panic("one more: " + shown(message.Payload()))
	}
}
