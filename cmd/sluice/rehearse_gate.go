package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/redis/go-redis/v9"

	"sluice/config"
	"sluice/rehearsal"
	"sluice/stockgate/link"
)

// isGate tells a process by its environment that it is the gate of a rehearsal.
const isGate = "SLUICE_REHEARSED_GATE"

// told is one line from the rehearsal: the first has the shadow, the others what happened or is asked.
type told struct {
	Shadow *shadow
	Taken  int64 // units that the shop sold
}

// tells is one line to the rehearsal.
type tells struct {
	Error  string          `json:",omitempty"`
	Online bool            `json:",omitempty"` // the error is Redis'
	Front  string          `json:",omitempty"`
	Look   *rehearsal.Look `json:",omitempty"`
}

// beGate is the gate of a rehearsal, in a process of its own, so that its processor time is its own. It reads what it is
// told from stdin, a line each, and ends with it: also when who started it was killed.
func beGate() error {
	// The end comes by stdin, and the keys are taken away then: whatever the terminal says, and also when nobody reads the
	// log any more.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var first told
	if err := in.Decode(&first); err != nil || first.Shadow == nil {
		return errors.New("this is a part of sluice rehearse: run that")
	}
	r, err := raise(first.Shadow)
	if err != nil {
		_ = out.Encode(tells{Error: err.Error(), Online: errors.Is(err, errOnline)})
		return errSaid
	}
	err = out.Encode(tells{Front: r.front})
	for err == nil {
		var line told
		if in.Decode(&line) != nil {
			break
		}
		if line.Taken > 0 {
			_, err = r.gate.store.Add(context.Background(), r.shadow.SKU, -line.Taken)
			continue
		}
		look, problem := r.look()
		t := tells{Look: &look}
		if problem != nil {
			t = tells{Error: problem.Error()}
		}
		err = out.Encode(t)
	}
	return errors.Join(err, r.strike())
}

// leftFor is how long the keys of a rehearsal stay when nobody takes them away.
const leftFor = 10 * time.Minute

// rehearsed is a gate on the shadow.
type rehearsed struct {
	shadow *shadow
	gate   *gate
	front  string
	keys   []string
	link   *link.Link // nil = there is no Redis
	took   *rehearsal.Watch
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// raise starts the gate as run does, and puts the units where it looks for them.
func raise(s *shadow) (*rehearsed, error) {
	c, _, err := s.load(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r := &rehearsed{shadow: s, keys: s.keys(c), took: rehearsal.NewWatch(), stop: func() {}}
	if c.Stock.Source == "redis" {
		if r.link, err = link.New(linkOptions(c)); err != nil {
			return nil, err
		}
		if err := r.vacant(); err != nil {
			return nil, err
		}
	}
	if r.gate, err = newGate(c, trial{}, log); err == nil {
		err = r.open(c, log)
	}
	if err != nil {
		return nil, errors.Join(err, r.strike())
	}
	return r, nil
}

func (r *rehearsed) open(c *config.Config, log *slog.Logger) error {
	if err := r.stock(c); err != nil {
		return err
	}
	listeners, err := openAll(c.Server.Listen, false)
	if err != nil {
		return err
	}
	r.front = listeners[0].Addr().String()
	r.gate.listen(listeners, log)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if r.link != nil {
		r.done.Go(func() { r.watch(ctx) })
	}
	return r.ready()
}

// stock puts the units up for sale.
func (r *rehearsed) stock(c *config.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	switch g := r.gate; {
	case r.shadow.route(c).Gate == "limit" || g.stock == nil:
		return nil
	case g.orders != nil && r.shadow.route(c).Gate == "reserve":
		_, err := g.orders.store.SetTotal(ctx, r.shadow.SKU, r.shadow.Units, int64(c.Stock.Reserve.PerUser))
		return err
	default:
		_, err := g.store.Set(ctx, r.shadow.SKU, r.shadow.Units)
		return err
	}
}

// ready waits for what run's readiness waits for.
func (r *rehearsed) ready() error {
	g := r.gate
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var missing string
		for _, check := range g.checks() {
			if says, ok := check.Probe(); !ok {
				missing = check.Name + ": " + says
			}
		}
		switch {
		case missing == "":
			return nil
		case time.Now().After(end):
			return fmt.Errorf("the gate does not become ready: %s", missing)
		}
	}
}

// vacant wants none of the keys to be there.
func (r *rehearsed) vacant() error {
	for _, name := range r.keys {
		there := int64(0)
		err := r.on(name, func(ctx context.Context, c *redis.Client) (err error) {
			there, err = c.Exists(ctx, name).Result()
			return err
		})
		if err != nil {
			return fmt.Errorf("redis: %w: %w; start it, or correct [stock.redis]", errOnline, err)
		}
		if there > 0 {
			return fmt.Errorf("the key %q is there already: the rehearsal touches nothing that it has not made", name)
		}
	}
	return nil
}

func (r *rehearsed) on(name string, ask func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	return r.link.To(name).Do(ctx, ask, unlessReply)
}

// unlessReply is err where Redis cannot be used, rather than does not want to.
func unlessReply(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) {
		return nil
	}
	return err
}

const (
	pingEvery  = 20 * time.Millisecond
	limitEvery = 2 * time.Second
)

// watch measures what a command takes, and has the keys end by themselves.
func (r *rehearsed) watch(ctx context.Context) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			began := time.Now()
			if r.on(r.keys[0], func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() }) == nil {
				r.took.Note(time.Since(began))
			}
			if now.After(next) {
				next = now.Add(limitEvery)
				r.limit()
			}
		}
	}
}

// limit gives each key an end.
func (r *rehearsed) limit() {
	for _, name := range r.keys {
		_ = r.on(name, func(ctx context.Context, c *redis.Client) error { return c.Expire(ctx, name, leftFor).Err() })
	}
}

// look tells how the gate is.
func (r *rehearsed) look() (rehearsal.Look, error) {
	g := r.gate
	families, err := g.metrics.Gather()
	if err != nil {
		return rehearsal.Look{}, err
	}
	l := rehearsal.Look{Calls: map[string]int64{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			note(&l, f.GetName(), m)
		}
	}
	if l.Command = r.took.Times(); r.link == nil {
		l.Calls = nil // none of them was to a Redis
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	c := g.config
	switch {
	case g.orders != nil && r.shadow.route(c).Gate == "reserve":
		now, ok, err := g.orders.store.Look(ctx, r.shadow.SKU)
		if err != nil {
			return l, err
		}
		l.Total, l.Free, l.Held, l.Sold, l.Counted, l.Ledger = now.Total, now.Free, now.Held, now.Sold, ok, true
	case g.stock != nil && r.shadow.route(c).Gate != "limit":
		now, err := g.store.Read(ctx, r.shadow.SKU)
		if err != nil {
			return l, err
		}
		l.Total, l.Free, l.Sold, l.Counted = r.shadow.Units, now.Left, r.shadow.Units-now.Left, true
	}
	return l, nil
}

// note takes one of the gate's own metrics in.
func note(l *rehearsal.Look, name string, m *dto.Metric) {
	label := ""
	if pairs := m.GetLabel(); len(pairs) == 1 {
		label = pairs[0].GetValue()
	}
	switch name {
	case "sluice_redis_calls_total":
		l.Calls["stock "+label] += int64(m.GetCounter().GetValue())
	case "sluice_ledger_call_orders":
		l.Calls["ledger "+label] += int64(m.GetHistogram().GetSampleCount())
	case "sluice_windows_total":
		l.Windows = max(l.Windows, int64(m.GetCounter().GetValue()))
	case "sluice_windows_saturated_total":
		l.Saturated = max(l.Saturated, int64(m.GetCounter().GetValue()))
	case "process_cpu_seconds_total":
		l.CPU = time.Duration(m.GetCounter().GetValue() * 1e9)
	case "process_resident_memory_bytes":
		l.Memory = int64(m.GetGauge().GetValue())
	}
}

// strike ends the gate and takes away what it has left in Redis.
func (r *rehearsed) strike() error {
	r.stop()
	r.done.Wait()
	if r.gate != nil {
		if r.gate.server != nil {
			r.gate.drain(r.gate.config.Server.ShutdownTimeout)
		}
		r.gate.close()
	}
	if r.link == nil {
		return nil
	}
	defer r.link.Close()
	for _, name := range r.keys {
		if err := r.on(name, func(ctx context.Context, c *redis.Client) error { return c.Del(ctx, name).Err() }); err != nil {
			return fmt.Errorf("take the keys of the rehearsal away: %w; they end by themselves within %s", err, leftFor)
		}
	}
	return nil
}
