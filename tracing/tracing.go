// Package tracing tells a collector (OpenTelemetry, OTLP over HTTP) what became of some of the requests that were
// forwarded. It promises that no request waits for it: what is sampled is put into a queue of fixed length, and what
// comes when the queue is full, or while the collector is away, is dropped and counted.
//
// It refuses to tell of refusals, which are too many, and of users, cookies and queries, which are nobody's business.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sluice/proxy"
)

const (
	queued  = 2048            // requests that wait to be told, at most
	batched = 256             // requests in one message to the collector
	every   = time.Second     // a smaller message leaves after this
	patient = 5 * time.Second // with the collector, for one message
)

// Options say where traces go and which requests are traced.
type Options struct {
	Endpoint string // the collector's URL, like "http://127.0.0.1:4318"; its path is /v1/traces where it names none
	OneIn    int    // of the requests that nobody has decided about, one in so many; 1 or above
	Service  string // the name that traces carry
	Version  string // of Sluice
	Log      *slog.Logger
}

// Tracer is a proxy.Tracer. It is safe for concurrent use.
type Tracer struct {
	options Options
	queue   chan told
	sender  *sender
	away    bool // the last message failed; the writer's own

	sent, dropped, failed atomic.Uint64 // requests

	end  context.CancelFunc
	done sync.WaitGroup
}

// New begins to tell o.Endpoint. It does not wait for the collector.
func New(o Options) (*Tracer, error) {
	address, err := endpoint(o.Endpoint)
	if err != nil {
		return nil, err
	}
	sender, err := newSender(address, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("open traces to %q: %w", o.Endpoint, err)
	}
	o.OneIn = max(o.OneIn, 1)
	ctx, end := context.WithCancel(context.Background())
	t := &Tracer{options: o, queue: make(chan told, queued), sender: sender, end: end}
	t.done.Go(func() { t.write(ctx) })
	return t, nil
}

// Close tells what is queued, once, and ends.
func (t *Tracer) Close() {
	t.end()
	t.done.Wait()
}

// Begin implements [proxy.Tracer]. Whoever stands before us and is trusted has decided with the sampled flag; else it is chance.
func (t *Tracer) Begin(parent []byte) (proxy.Trace, bool) {
	var trace proxy.Trace
	known, sampled := parse(parent, &trace)
	if known && !sampled || !known && rand.IntN(t.options.OneIn) != 0 {
		return proxy.Trace{}, false
	}
	if !known {
		fill(trace.ID[:8])
		fill(trace.ID[8:])
	}
	fill(trace.Span[:])
	fill(trace.Shop[:])
	return trace, true
}

// fill writes 8 random bytes that are not all zeros, which would mean "none".
func fill(b []byte) {
	for n := rand.Uint64() | 1; len(b) > 0; b, n = b[1:], n>>8 {
		b[0] = byte(n)
	}
}

// End implements [proxy.Tracer].
func (t *Tracer) End(trace proxy.Trace, e proxy.Entry) {
	select {
	case t.queue <- keep(trace, e, time.Now()):
	default:
		t.dropped.Add(1)
	}
}

// write tells the collector until ctx ends, then what is left, once.
func (t *Tracer) write(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	batch := make([]told, 0, batched)
	for {
		select {
		case one := <-t.queue:
			if batch = append(batch, one); len(batch) < batched {
				continue
			}
		case <-tick.C:
		case <-ctx.Done():
			t.rest(batch)
			return
		}
		t.export(ctx, batch)
		batch = batch[:0]
	}
}

// rest tells what is left at the end, and gives up where the collector does not answer.
func (t *Tracer) rest(batch []told) {
	ctx, end := context.WithTimeout(context.Background(), patient)
	defer end()
	for len(t.queue) > 0 {
		batch = append(batch, <-t.queue)
	}
	t.export(ctx, batch)
	t.sender.client.CloseIdleConnections()
}

// export sends one message, once: while it was repeated, the queue would fill, and the next is as good as the last.
func (t *Tracer) export(ctx context.Context, batch []told) {
	if len(batch) == 0 {
		return
	}
	ctx, end := context.WithTimeout(ctx, patient)
	defer end()
	err := t.sender.send(ctx, messageOf(&t.options, batch))
	if err != nil {
		t.failed.Add(uint64(len(batch)))
	} else {
		t.sent.Add(uint64(len(batch)))
	}
	if away := err != nil; away != t.away {
		if t.away = away; away {
			t.options.Log.Warn("traces do not arrive; they are dropped and counted", "err", err)
		} else {
			t.options.Log.Info("traces arrive again")
		}
	}
}
