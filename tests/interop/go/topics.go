package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

var topics = []feature{
	{name: "partitioned_round_robin", show: partitionedRoundRobin},
	{name: "partitioned_single", show: partitionedSingle},
	{name: "partitioned_custom_router", show: partitionedCustomRouter},
	{name: "partitioned_by_key", show: partitionedByKey},
	{name: "partitioned_grows", show: partitionedGrows},
	{name: "partitioned_deleted_is_empty", show: partitionedDeletedIsEmpty},
	{name: "auto_creation_rules", show: autoCreationRules},
	{name: "refused_topics", show: refusedTopics},
	{name: "terminated_topic", show: terminatedTopic},
	{name: "unload_while_busy", show: unloadWhileBusy},
	{name: "delete_with_clients", show: deleteWithClients},
	{name: "http_service_url", show: httpServiceURL},
	{name: "tls", show: overTLS},
	{name: "tls_not_trusted", show: tlsNotTrusted},
	{name: "broker_restart", show: brokerRestart, restarts: true},
}

// inOrder: in each partition the numbers only grow. It gives the partitions.
func inOrder(messages []pulsar.Message) map[int32]bool {
	last := map[int32]int{}
	for _, m := range messages {
		before, seen := last[m.ID().PartitionIdx()]
		check(!seen || before < number(m), "%d after %d", number(m), before)
		last[m.ID().PartitionIdx()] = number(m)
	}
	partitions := map[int32]bool{}
	for partition := range last {
		partitions[partition] = true
	}
	return partitions
}

type router = func(*pulsar.ProducerMessage, pulsar.TopicMetadata) int

func through(w *world, n int, chooses router) map[int32]bool {
	admin("PUT", w.path("t")+"/partitions", 4)
	consumer := w.consumer(w.topic("t"))
	sendAll(w.producer(w.topic("t"), func(o *pulsar.ProducerOptions) { o.MessageRouter = chooses }),
		numbered(0, n))
	got := receiveAndAck(consumer, n)
	sameInAnyOrder(got, numbered(0, n))
	nothingMore(consumer)
	return inOrder(got)
}

func partitionedRoundRobin(w *world) {
	partitions := through(w, 400, nil)
	check(len(partitions) == 4, "partitions: %v", partitions)
	names, err := w.client.TopicPartitions(w.topic("t"))
	must(err)
	check(len(names) == 4, "partitions: %v", names)
}

func partitionedSingle(w *world) {
	partitions := through(w, 400, pulsar.NewSinglePartitionRouter())
	check(len(partitions) == 1, "partitions: %v", partitions)
}

func partitionedCustomRouter(w *world) {
	partitions := through(w, 100, func(_ *pulsar.ProducerMessage, topic pulsar.TopicMetadata) int {
		return int(topic.NumPartitions()) - 2
	})
	check(len(partitions) == 1 && partitions[2], "partitions: %v", partitions)
}

func partitionedByKey(w *world) {
	admin("PUT", w.path("t")+"/partitions", 3)
	consumer := w.consumer(w.topic("t"))
	var sent []*pulsar.ProducerMessage
	for i, payload := range numbered(0, 300) {
		sent = append(sent, &pulsar.ProducerMessage{Payload: payload, Key: fmt.Sprintf("key-%d", i%10)})
	}
	sendMessages(w.producer(w.topic("t"), batching), sent)
	got := receiveAndAck(consumer, 300)
	sameInAnyOrder(got, numbered(0, 300))
	check(len(inOrder(got)) > 1, "keys are spread")
	home := map[string]int32{}
	for _, m := range got {
		before, seen := home[m.Key()]
		check(!seen || before == m.ID().PartitionIdx(), "%s moved", m.Key())
		home[m.Key()] = m.ID().PartitionIdx()
	}
}

// partitionedGrows: this client's consumers look for new partitions by the discovery period.
func partitionedGrows(w *world) {
	admin("PUT", w.path("t")+"/partitions", 2)
	consumer := w.consumer(w.topic("t"), func(o *pulsar.ConsumerOptions) {
		o.AutoDiscoveryPeriod = time.Second
	})
	producer := w.producer(w.topic("t"), func(o *pulsar.ProducerOptions) {
		o.PartitionsAutoDiscoveryInterval = time.Second
		next := 0
		o.MessageRouter = func(_ *pulsar.ProducerMessage, topic pulsar.TopicMetadata) int {
			next++
			return next % int(topic.NumPartitions())
		}
	})
	send(producer, numbered(0, 20))
	admin("POST", w.path("t")+"/partitions", 5)
	time.Sleep(2500 * time.Millisecond) // nothing says when the producer has seen it
	send(producer, numbered(20, 120))
	got := receiveAndAck(consumer, 120)
	sameInAnyOrder(got, numbered(0, 120))
	check(len(inOrder(got)) == 5, "partitions: %v", inOrder(got))
}

func partitionedDeletedIsEmpty(w *world) {
	admin("PUT", w.path("t")+"/partitions", 2)
	producer := w.producer(w.topic("t"))
	send(producer, numbered(0, 10))
	producer.Close()
	admin("DELETE", w.path("t")+"/partitions", nil)
	admin("PUT", w.path("t")+"/partitions", 2)
	consumer := w.consumer(w.topic("t"))
	send(w.producer(w.topic("t")), numbered(10, 20))
	sameInAnyOrder(receiveAndAck(consumer, 10), numbered(10, 20))
	nothingMore(consumer)
}

func autoCreationRules(w *world) {
	namespace := "public/" + w.topic("ns")
	admin("PUT", "/namespaces/"+namespace, nil)
	rule := "/namespaces/" + namespace + "/autoTopicCreation"
	base := "persistent://" + namespace + "/"
	admin("POST", rule, map[string]any{"allowAutoTopicCreation": false})
	_, err := tryProducer(w.client, base+"none")
	check(err != nil, "a producer makes it")
	_, err = tryConsumer(w.client, base+"none")
	check(err != nil, "a consumer makes it")
	check(admin("GET", "/persistent/"+namespace, nil) == "[]", "there are topics")
	admin("POST", rule, map[string]any{"allowAutoTopicCreation": true, "topicType": "partitioned",
		"defaultNumPartitions": 3})
	send(w.producer(base+"three"), numbered(0, 1))
	names, err := w.client.TopicPartitions(base + "three")
	must(err)
	check(len(names) == 3, "partitions: %v", names)
	refused("TopicNotFound", func() error {
		_, err := tryProducer(w.client, base+"three-partition-7")
		return err
	})
}

func refusedTopics(w *world) {
	_, err := tryProducer(w.client, "persistent://no-tenant/no-namespace/t")
	check(err != nil, "there is no such tenant")
	_, err = tryConsumer(w.client, "persistent://public/no-such-namespace/t")
	check(err != nil, "there is no such namespace")
	send(w.producer(w.topic("t")), numbered(0, 1)) // the client goes on
}

func terminatedTopic(w *world) {
	producer := w.producer(w.topic("t"))
	send(producer, numbered(0, 10))
	consumer := w.consumer(w.topic("t"))
	admin("POST", w.path("t")+"/terminate", nil)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("too late")})
	check(err != nil && ctx.Err() == nil, "it takes more: %v", err)
	refused("TopicTerminated", func() error {
		_, err := tryProducer(w.client, w.topic("t"))
		return err
	})
	same(receiveAndAck(consumer, 10), numbered(0, 10))
	nothingMore(consumer)
}

// publishing goes on until it is told to stop; what was acknowledged must all come, each in its turn.
type publishing struct {
	mutex sync.Mutex
	acked []int
	stop  chan bool
	done  chan bool
}

func publish(w *world, topic string) *publishing {
	p := &publishing{stop: make(chan bool), done: make(chan bool)}
	producer := w.producer(topic, batching, func(o *pulsar.ProducerOptions) { o.SendTimeout = -1 })
	go p.run(producer)
	return p
}

func (p *publishing) run(producer pulsar.Producer) {
	defer close(p.done)
	for i := 0; ; i++ {
		select {
		case <-p.stop:
			_ = producer.Flush()
			return
		default:
		}
		message := &pulsar.ProducerMessage{Payload: []byte(fmt.Sprintf("message %d", i))}
		producer.SendAsync(context.Background(), message,
			func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				if err == nil {
					p.mutex.Lock()
					p.acked = append(p.acked, i)
					p.mutex.Unlock()
				}
			})
		time.Sleep(300 * time.Microsecond)
	}
}

func (p *publishing) count() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.acked)
}

func (p *publishing) progress(n int) {
	before := p.count()
	soon("publishing goes on", func() bool { return p.count() >= before+n })
}

func (p *publishing) check(consumer pulsar.Consumer) {
	close(p.stop)
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		panic("the last message is not sent")
	}
	next := 0
	for next < p.count() {
		n := number(receiveAndAck(consumer, 1)[0])
		check(n <= next, "message %d came, %d did not", n, next)
		next = max(next, n+1)
	}
	slices.Sort(p.acked)
	for i, n := range p.acked {
		check(i == n, "message %d was not acknowledged to the producer", i)
	}
}

func unloadWhileBusy(w *world) {
	consumer, publishing := w.consumer(w.topic("t")), publish(w, w.topic("t"))
	for range 5 {
		publishing.progress(300)
		admin("PUT", w.path("t")+"/unload", nil)
	}
	publishing.progress(300)
	publishing.check(consumer)
}

func brokerRestart(w *world) {
	consumer, publishing := w.consumer(w.topic("t")), publish(w, w.topic("t"))
	for range 3 {
		publishing.progress(500)
		restart()
	}
	publishing.progress(500)
	publishing.check(consumer)
}

func deleteWithClients(w *world) {
	producer, consumer := w.producer(w.topic("t")), w.consumer(w.topic("t"))
	send(producer, numbered(0, 10))
	status, text := ask("DELETE", w.path("t"), nil)
	check(status == 412, "delete: %d %s", status, text)
	same(receiveAndAck(consumer, 10), numbered(0, 10))
	producer.Close()
	consumer.Close()
	admin("DELETE", w.path("t")+"?force=true", nil)
	status, _ = ask("GET", w.path("t")+"/stats", nil)
	check(status == 404, "stats: %d", status)
	send(w.producer(w.topic("t")), numbered(10, 11))
	admin("DELETE", w.path("t")+"?force=true", nil) // under a producer's hands
	send(w.producer(w.topic("t")), numbered(11, 12))
	same(receiveAndAck(w.consumer(w.topic("t")), 1), numbered(11, 12))
}

func overTLS(w *world) {
	admin("PUT", w.path("t")+"/partitions", 8)
	wanted := [][]byte{}
	for i, url := range []string{options.tlsURL, options.tlsWebURL} {
		client := w.clientWith(pulsar.ClientOptions{URL: url, OperationTimeout: 30 * time.Second,
			TLSTrustCertsFilePath: options.tlsTrust, TLSValidateHostname: true})
		sendAll(producerBy(client, w.topic("t")), numbered(0, 1000))
		wanted = append(wanted, numbered(0, 1000)...)
		consumer := consumerBy(client, w.topic("t"), func(o *pulsar.ConsumerOptions) {
			o.SubscriptionName = fmt.Sprint("sub-", i)
		})
		sameInAnyOrder(receiveAndAck(consumer, len(wanted)), wanted)
	}
}

func tlsNotTrusted(w *world) {
	client := w.clientWith(pulsar.ClientOptions{URL: options.tlsURL, OperationTimeout: 3 * time.Second,
		ConnectionTimeout: 3 * time.Second})
	_, err := client.CreateProducer(pulsar.ProducerOptions{Topic: w.topic("t")})
	check(err != nil, "a broker that cannot be trusted was")
}

func httpServiceURL(w *world) {
	admin("PUT", w.path("t")+"/partitions", 2)
	client := w.anotherClient(options.webURL)
	consumer := consumerBy(client, w.topic("t"))
	sendAll(producerBy(client, w.topic("t")), numbered(0, 20))
	sameInAnyOrder(receiveAndAck(consumer, 20), numbered(0, 20))
}
