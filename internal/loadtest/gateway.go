package loadtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/stores"
	"sluice/internal/listener"
	"sluice/internal/load"
	"sluice/internal/periodic"
	"sluice/stockgate/redisconn"
)

// ErrRedisAway is part of the error of a load test that cannot reach its Redis.
var ErrRedisAway = errors.New("an online check failed")

// leftFor is how long the keys of a load test stay when they are not deleted.
const leftFor = 10 * time.Minute

// testedGateway is a gateway in the sandbox.
type testedGateway struct {
	sandbox *sandbox
	gate    *gateway.Gateway
	front   string
	keys    []string
	link    *redisconn.Client // nil = there is no Redis
	took    *load.Stopwatch
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// raise starts the gateway of c as run does, and puts the units where it looks for them.
func raise(s *sandbox, c *config.Config) (*testedGateway, error) {
	r := &testedGateway{sandbox: s, keys: s.keys(c), took: load.NewStopwatch(), stop: func() {}}
	var err error
	if c.Stock.Source == "redis" {
		if r.link, err = redisconn.New(stores.RedisOptions(c)); err != nil {
			return nil, err
		}
		if err := r.vacant(); err != nil {
			return nil, errors.Join(err, r.link.Close())
		}
	}
	var last logTail
	log := slog.New(slog.NewTextHandler(&last, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if r.gate, err = gateway.New(c, gateway.Options{}, log); err == nil {
		err = r.open(c, log)
	}
	if err != nil {
		return nil, errors.Join(last.explain(err), r.strike())
	}
	return r, nil
}

// maxTail bounds what is kept of the gateway's log, in bytes.
const maxTail = 8 << 10

// logTail keeps the last lines that are written to it. It is safe for concurrent use.
type logTail struct {
	mu   sync.Mutex
	text []byte
}

// Write takes one or more whole lines.
func (l *logTail) Write(lines []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, lines...)
	if over := len(l.text) - maxTail; over > 0 {
		_, rest, _ := bytes.Cut(l.text[over-1:], []byte("\n"))
		l.text = append(l.text[:0], rest...)
	}
	return len(lines), nil
}

// explain adds the lines to err, which may follow from what they tell.
func (l *logTail) explain(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.text) == 0 {
		return err
	}
	return fmt.Errorf("%w; the end of the gateway's log:\n%s", err, bytes.TrimSpace(l.text))
}

func (r *testedGateway) open(c *config.Config, log *slog.Logger) error {
	if err := r.stock(c); err != nil {
		return err
	}
	listeners, err := listener.OpenAll(c.Server.Listen, false)
	if err != nil {
		return err
	}
	r.front = listeners[0].Addr().String()
	r.gate.Listen(listeners, log)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	if r.link != nil {
		r.done.Go(func() { r.watch(ctx) })
	}
	return r.ready()
}

// stock puts the units up for sale.
func (r *testedGateway) stock(c *config.Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), gateway.LedgerTimeout)
	defer cancel()
	switch g := r.gate; {
	case r.sandbox.route(c).Gate == "limit" || g.Stock == nil:
		return nil
	case g.Orders() != nil && r.sandbox.route(c).Gate == "reserve":
		_, err := g.Orders().Store.SetTotal(ctx, r.sandbox.SKU, r.sandbox.Units, int64(c.Stock.Reserve.MaxPerUser))
		return err
	default:
		_, err := g.Store.Set(ctx, r.sandbox.SKU, r.sandbox.Units)
		return err
	}
}

// ready waits for what run's readiness waits for.
func (r *testedGateway) ready() error {
	g := r.gate
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var missing string
		for _, check := range g.Checks() {
			if says, health := check.Probe(); health == admin.Unready {
				missing = check.Name + ": " + says
			}
		}
		switch {
		case missing == "":
			return nil
		case time.Now().After(end):
			return fmt.Errorf("the gateway does not become ready: %s", missing)
		}
	}
}

// vacant wants none of the keys to be there.
func (r *testedGateway) vacant() error {
	for _, name := range r.keys {
		there := int64(0)
		err := r.on(name, func(ctx context.Context, c redisconn.Commands) (err error) {
			there, err = c.Exists(ctx, name).Result()
			return err
		})
		if err != nil {
			return fmt.Errorf("redis: %w: %w; start it, or correct [stock.redis]", ErrRedisAway, err)
		}
		if there > 0 {
			return fmt.Errorf("the key %q is there already: the load test touches nothing that it has not made", name)
		}
	}
	return nil
}

func (r *testedGateway) on(name string, ask func(context.Context, redisconn.Commands) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), gateway.LedgerTimeout)
	defer cancel()
	return r.link.To(name).Do(ctx, ask, redisconn.Unanswered)
}

const (
	pingEvery  = 20 * time.Millisecond
	limitEvery = 100 * time.Millisecond
)

// watch measures what a command takes, and has the keys end by themselves.
func (r *testedGateway) watch(ctx context.Context) {
	var next time.Time
	periodic.After(ctx, pingEvery, func(context.Context) {
		began := time.Now()
		if r.on(r.keys[0], func(ctx context.Context, c redisconn.Commands) error { return c.Ping(ctx).Err() }) == nil {
			r.took.Observe(time.Since(began))
		}
		if began.After(next) {
			next = began.Add(limitEvery)
			r.limit()
		}
	})
}

// limit gives each key an end. The commands that a user of Redis needs for a ledger have PEXPIRE, not EXPIRE.
func (r *testedGateway) limit() {
	for _, name := range r.keys {
		_ = r.on(name, func(ctx context.Context, c redisconn.Commands) error { return c.PExpire(ctx, name, leftFor).Err() })
	}
}

// Read implements loadtest.Gate.
func (r *testedGateway) Read(context.Context) (GatewayReading, error) {
	g := r.gate
	families, err := g.Metrics.Gather()
	if err != nil {
		return GatewayReading{}, err
	}
	l := GatewayReading{Calls: map[string]int64{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			addMetric(&l, f.GetName(), m)
		}
	}
	if l.Command = r.took.Times(); r.link == nil {
		l.Calls = nil // none of them was to a Redis
	}
	ctx, cancel := context.WithTimeout(context.Background(), gateway.LedgerTimeout)
	defer cancel()
	c := g.Config
	switch {
	case g.Orders() != nil && r.sandbox.route(c).Gate == "reserve":
		now, ok, err := g.Orders().Store.ReadStock(ctx, r.sandbox.SKU)
		if err != nil {
			return l, err
		}
		if ok {
			l.Ledger = &load.Ledger{Total: now.Total, Free: now.Free, Held: now.Held, Sold: now.Sold, Own: true}
		}
	case g.Stock != nil && r.sandbox.route(c).Gate != "limit":
		now, err := g.Store.Read(ctx, r.sandbox.SKU)
		if err != nil {
			return l, err
		}
		l.Ledger = &load.Ledger{Total: r.sandbox.Units, Free: now.Left, Sold: r.sandbox.Units - now.Left}
	}
	return l, nil
}

// addMetric takes one of the gate's own metrics in.
func addMetric(l *GatewayReading, name string, m *dto.Metric) {
	label := ""
	if pairs := m.GetLabel(); len(pairs) == 1 {
		label = pairs[0].GetValue()
	}
	switch name {
	case "sluice_redis_calls_total":
		l.Calls["stock "+label] += int64(m.GetCounter().GetValue())
	case "sluice_delivery_calls_total":
		l.Calls["queue "+label] += int64(m.GetCounter().GetValue())
	case "sluice_ledger_call_orders":
		l.Calls["ledger "+label] += int64(m.GetHistogram().GetSampleCount())
	case "sluice_windows_total":
		l.Windows = max(l.Windows, int64(m.GetCounter().GetValue()))
	case "sluice_windows_saturated_total":
		l.Saturated = max(l.Saturated, int64(m.GetCounter().GetValue()))
	}
}

// strike ends the gate and takes away what it has left in Redis.
func (r *testedGateway) strike() error {
	r.stop()
	r.done.Wait()
	if r.gate != nil {
		if r.gate.Server != nil {
			r.gate.Drain(r.gate.Config.Server.ShutdownTimeout)
		}
		r.gate.Close()
	}
	if r.link == nil {
		return nil
	}
	defer r.link.Close()
	for _, name := range r.keys {
		del := func(ctx context.Context, c redisconn.Commands) error { return c.Del(ctx, name).Err() }
		if err := r.on(name, del); err != nil {
			return fmt.Errorf("take the keys of the load test away: %w; they end by themselves within %s", err, leftFor)
		}
	}
	return nil
}
