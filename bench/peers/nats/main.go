// nats - publishes to a JetStream stream and consumes it, with the summary of `lgm perf`.
//
// A publisher keeps -o messages without an acknowledgement; with -r a message's time counts from when
// it was due.  A push consumer on a connection of its own gets all of it.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

type shape struct {
	url     string
	size    int
	pending int
	rate    float64
	seconds float64
	warmup  float64
}

type sample struct {
	warm    time.Time
	end     time.Time
	times   []float64
	counted int64
}

func (s *sample) note(due, now time.Time) {
	if now.Before(s.warm) {
		return
	}
	s.times = append(s.times, float64(now.Sub(due).Microseconds())/1000)
	if now.Before(s.end) {
		s.counted++
	}
}

func (s *sample) quantiles() map[string]float64 {
	sort.Float64s(s.times)
	out := map[string]float64{}
	for name, q := range map[string]float64{"50": .5, "95": .95, "99": .99, "99.9": .999, "max": 1} {
		if n := len(s.times); n > 0 {
			out[name] = s.times[min(int(q*float64(n)), n-1)]
		}
	}
	return out
}

func connect(url string) *nats.Conn {
	c, err := nats.Connect(url)
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// publish keeps the window full, or the rate; acknowledgements are taken in order by another goroutine.
func publish(js nats.JetStreamContext, o shape, began time.Time, s *sample) {
	type inFlight struct {
		due    time.Time
		future nats.PubAckFuture
	}
	window := make(chan inFlight, max(o.pending-1, 0))
	done := make(chan struct{})
	go func() {
		for f := range window {
			select {
			case <-f.future.Ok():
				s.note(f.due, time.Now())
			case err := <-f.future.Err():
				log.Fatal(err)
			}
		}
		close(done)
	}()
	payload := make([]byte, o.size)
	for i := 0; ; i++ {
		now := time.Now()
		if now.After(s.end) {
			break
		}
		due := now
		if o.rate > 0 {
			due = began.Add(time.Duration(float64(i) / o.rate * 1e9))
			if wait := due.Sub(now); wait > 0 {
				time.Sleep(wait)
			}
		}
		binary.LittleEndian.PutUint64(payload, uint64(due.UnixNano()))
		f, err := js.PublishMsgAsync(&nats.Msg{Subject: "bench.1", Data: payload})
		if err != nil {
			log.Fatal(err)
		}
		window <- inFlight{due, f}
	}
	close(window)
	<-done
}

// publishAlone has one message in flight.
func publishAlone(js nats.JetStreamContext, o shape, s *sample) {
	payload := make([]byte, o.size)
	for now := time.Now(); now.Before(s.end); now = time.Now() {
		binary.LittleEndian.PutUint64(payload, uint64(now.UnixNano()))
		if _, err := js.Publish("bench.1", payload); err != nil {
			log.Fatal(err)
		}
		s.note(now, time.Now())
	}
}

func main() {
	var o shape
	flag.StringVar(&o.url, "u", "nats://127.0.0.1:4222", "server")
	flag.IntVar(&o.size, "s", 1024, "bytes of a message, 8 at least")
	flag.IntVar(&o.pending, "o", 1000, "messages without an acknowledgement")
	flag.Float64Var(&o.rate, "r", 0, "messages a second; 0: as many as are taken")
	flag.Float64Var(&o.seconds, "time", 4, "seconds")
	flag.Float64Var(&o.warmup, "w", 1, "seconds before that")
	flag.Parse()

	sender, receiver := connect(o.url), connect(o.url)
	js, err := sender.JetStream(nats.PublishAsyncMaxPending(o.pending + 1))
	if err != nil {
		log.Fatal(err)
	}
	_ = js.DeleteStream("bench")
	if _, err = js.AddStream(&nats.StreamConfig{Name: "bench", Subjects: []string{"bench.>"},
		Storage: nats.FileStorage, Replicas: 1}); err != nil {
		log.Fatal(err)
	}
	incoming, err := receiver.JetStream()
	if err != nil {
		log.Fatal(err)
	}
	var received atomic.Int64
	if _, err = incoming.Subscribe("bench.>", func(*nats.Msg) { received.Add(1) }, nats.OrderedConsumer()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	began := time.Now()
	s := &sample{warm: began.Add(time.Duration(o.warmup * 1e9))}
	s.end = s.warm.Add(time.Duration(o.seconds * 1e9))
	if o.pending == 1 {
		publishAlone(js, o, s)
	} else {
		publish(js, o, began, s)
	}
	rate := float64(s.counted) / o.seconds
	err = json.NewEncoder(os.Stdout).Encode(map[string]any{"messagesPerSecond": rate, "megabytesPerSecond": rate * float64(o.size) / 1e6,
		"messages": s.counted, "received": received.Load(), "latencyMs": s.quantiles()})
	if err != nil {
		log.Fatal(err)
	}
	_ = js.DeleteStream("bench")
}
