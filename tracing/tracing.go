// Package tracing sends traces of some of the forwarded requests to a collector (OpenTelemetry, OTLP over HTTP). It
// promises that no request waits for it: sampled requests enter a queue of fixed length. When the queue is full or the
// collector does not answer, they are dropped and counted.
// It does not trace rejections, which are too many, and it sends no users, cookies or queries.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"sluice/proxy/metrics"
)

const (
	queueSize   = 2048            // requests that wait to be sent
	batchSize   = 256             // requests of one message
	batchPause  = time.Second     // after which a smaller message is sent
	sendTimeout = 5 * time.Second // of one message
)

// Options say where traces go and which requests are traced.
type Options struct {
	Endpoint    string  // the collector's URL, like "http://127.0.0.1:4318"; its path is /v1/traces where it names none
	SampleRatio float64 // of requests without a trusted parent, 0 to 1
	Service     string  // the name that traces carry
	Version     string  // of Sluice
	Counts      *Counts // of this Tracer and of those before it; nil = of this one alone
	Log         *slog.Logger
}

// Tracer is a metrics.Tracer. It is safe for concurrent use.
type Tracer struct {
	options Options
	queue   chan record
	sender  *sender
	failing bool // the last message failed; used by write alone

	*Counts

	end  context.CancelFunc
	done sync.WaitGroup
}

// New starts to send to o.Endpoint. It does not wait for the collector.
func New(o Options) (*Tracer, error) {
	address, err := endpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	sender, err := newSender(address, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("open traces to %q: %w", o.Endpoint, err)
	}
	ctx, end := context.WithCancel(context.Background())
	t := &Tracer{options: o, queue: make(chan record, queueSize), sender: sender, end: end, Counts: o.Counts}
	if t.Counts == nil {
		t.Counts = &Counts{}
	}
	t.done.Go(func() { t.write(ctx) })
	return t, nil
}

// Close sends what is queued, in one attempt, and stops.
func (t *Tracer) Close() {
	t.end()
	t.done.Wait()
}

// Begin implements [metrics.Tracer]. The sampled flag of a trusted parent decides; without a parent it is random.
func (t *Tracer) Begin(parent []byte) (metrics.Trace, bool) {
	var trace metrics.Trace
	known, sampled := parse(parent, &trace)
	if known && !sampled || !known && rand.Float64() >= t.options.SampleRatio {
		return metrics.Trace{}, false
	}
	if !known {
		fillRandom(trace.ID[:8])
		fillRandom(trace.ID[8:])
	}
	fillRandom(trace.Span[:])
	fillRandom(trace.Upstream[:])
	return trace, true
}

// fillRandom writes 8 random bytes that are not all zeros, which would mean "none".
func fillRandom(b []byte) {
	for n := rand.Uint64() | 1; len(b) > 0; b, n = b[1:], n>>8 {
		b[0] = byte(n)
	}
}

// End implements [metrics.Tracer].
func (t *Tracer) End(trace metrics.Trace, e metrics.AccessRecord) {
	select {
	case t.queue <- newRecord(trace, e, time.Now()):
	default:
		t.dropped.Add(1)
	}
}

// write sends messages until ctx ends, and then what is left, in one attempt.
func (t *Tracer) write(ctx context.Context) {
	tick := time.NewTicker(batchPause)
	defer tick.Stop()
	batch := make([]record, 0, batchSize)
	for {
		select {
		case one := <-t.queue:
			if batch = append(batch, one); len(batch) < batchSize {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			t.sendRest(batch)
			return
		}
		t.export(ctx, batch)
		batch = batch[:0]
	}
}

// sendRest sends what is left at the end. It stops after sendTimeout.
func (t *Tracer) sendRest(batch []record) {
	ctx, end := context.WithTimeout(context.Background(), sendTimeout)
	defer end()
	for len(t.queue) > 0 {
		batch = append(batch, <-t.queue)
	}
	t.export(ctx, batch)
	t.sender.client.CloseIdleConnections()
}

// export sends one message in one attempt: the queue would fill during another one, and a newer trace is as useful.
func (t *Tracer) export(ctx context.Context, batch []record) {
	if len(batch) == 0 {
		return
	}
	ctx, end := context.WithTimeout(ctx, sendTimeout)
	defer end()
	err := t.sender.send(ctx, messageOf(&t.options, batch))
	if err != nil {
		t.failed.Add(uint64(len(batch)))
	} else {
		t.sent.Add(uint64(len(batch)))
	}
	if failing := err != nil; failing != t.failing {
		if t.failing = failing; failing {
			t.options.Log.Warn("traces are dropped and counted: the collector does not accept them", "err", err)
		} else {
			t.options.Log.Info("the collector accepts traces again")
		}
	}
}
