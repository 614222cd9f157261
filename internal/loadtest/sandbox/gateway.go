package sandbox

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

	"sluice/admin"
	"sluice/config"
	"sluice/internal/app"
	"sluice/internal/app/orders"
	"sluice/internal/app/stores"
	"sluice/internal/crowd"
	"sluice/internal/listener"
	"sluice/internal/loadtest"
	"sluice/stockgate/redisconn"
)

// isGate tells a process by its environment that it is the gate of a load test.
const isGate = "SLUICE_LOADTEST_GATEWAY"

// IsChild reports whether this process is the gate of a load test.
func IsChild() bool { return os.Getenv(isGate) != "" }

// childRequest is one line from the load test: the first has the sandbox, the others what happened or is asked.
type childRequest struct {
	Sandbox *sandbox
	Sold    int64 // units that the shop sold
}

// childReply is one line to the load test.
type childReply struct {
	Error   string                   `json:",omitempty"`
	Online  bool                     `json:",omitempty"` // the error is Redis'
	Front   string                   `json:",omitempty"`
	Reading *loadtest.GatewayReading `json:",omitempty"`
}

// ServeChild is the gate of a load test, in a process of its own, so that its processor time is its own. It reads what
// it is told from stdin, a line each, and ends with it: also when who started it was killed.
func ServeChild() error {
	// The end comes by stdin, and the keys are taken away then: whatever the terminal says, and also when no process reads
	// the log any more.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var first childRequest
	if err := in.Decode(&first); err != nil || first.Sandbox == nil {
		return errors.New("this is a part of sluice loadtest: run that")
	}
	r, err := raise(first.Sandbox)
	if err != nil {
		_ = out.Encode(childReply{Error: err.Error(), Online: errors.Is(err, ErrRedisAway)})
		return ErrReported
	}
	err = out.Encode(childReply{Front: r.front})
	for err == nil {
		var line childRequest
		if in.Decode(&line) != nil {
			break
		}
		if line.Sold > 0 {
			_, err = r.gate.Store.Add(context.Background(), r.sandbox.SKU, -line.Sold)
			continue
		}
		look, problem := r.readMetrics()
		t := childReply{Reading: &look}
		if problem != nil {
			t = childReply{Error: problem.Error()}
		}
		err = out.Encode(t)
	}
	return errors.Join(err, r.strike())
}

// ErrRedisAway is part of the error of a load test that cannot reach its Redis.
var ErrRedisAway = errors.New("an online check failed")

// ErrReported ends a child that has told the load test already why.
var ErrReported = errors.New("the load test knows why")

// leftFor is how long the keys of a load test stay when they are not deleted.
const leftFor = 10 * time.Minute

// testedGateway is a gateway in the sandbox.
type testedGateway struct {
	sandbox *sandbox
	gate    *app.Gateway
	front   string
	keys    []string
	link    *redisconn.Client // nil = there is no Redis
	took    *crowd.Stopwatch
	stop    context.CancelFunc
	done    sync.WaitGroup
}

// raise starts the gate as run does, and puts the units where it looks for them.
func raise(s *sandbox) (*testedGateway, error) {
	c, _, err := s.load(os.LookupEnv)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	r := &testedGateway{sandbox: s, keys: s.keys(c), took: crowd.NewStopwatch(), stop: func() {}}
	if c.Stock.Source == "redis" {
		if r.link, err = redisconn.New(stores.RedisOptions(c)); err != nil {
			return nil, err
		}
		if err := r.vacant(); err != nil {
			return nil, err
		}
	}
	if r.gate, err = app.New(c, app.Options{}, log); err == nil {
		err = r.open(c, log)
	}
	if err != nil {
		return nil, errors.Join(err, r.strike())
	}
	return r, nil
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
	ctx, cancel := context.WithTimeout(context.Background(), orders.OpenTimeout)
	defer cancel()
	switch g := r.gate; {
	case r.sandbox.route(c).Gate == "limit" || g.Stock == nil:
		return nil
	case g.Orders != nil && r.sandbox.route(c).Gate == "reserve":
		_, err := g.Orders.Store.SetTotal(ctx, r.sandbox.SKU, r.sandbox.Units, int64(c.Stock.Reserve.MaxPerUser))
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
		err := r.on(name, func(ctx context.Context, c *redis.Client) (err error) {
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

func (r *testedGateway) on(name string, ask func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), orders.OpenTimeout)
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
func (r *testedGateway) watch(ctx context.Context) {
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
				r.took.Observe(time.Since(began))
			}
			if now.After(next) {
				next = now.Add(limitEvery)
				r.limit()
			}
		}
	}
}

// limit gives each key an end.
func (r *testedGateway) limit() {
	for _, name := range r.keys {
		_ = r.on(name, func(ctx context.Context, c *redis.Client) error { return c.Expire(ctx, name, leftFor).Err() })
	}
}

// readMetrics tells how the gate is.
func (r *testedGateway) readMetrics() (loadtest.GatewayReading, error) {
	g := r.gate
	families, err := g.Metrics.Gather()
	if err != nil {
		return loadtest.GatewayReading{}, err
	}
	l := loadtest.GatewayReading{Calls: map[string]int64{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			addMetric(&l, f.GetName(), m)
		}
	}
	if l.Command = r.took.Times(); r.link == nil {
		l.Calls = nil // none of them was to a Redis
	}
	ctx, cancel := context.WithTimeout(context.Background(), orders.OpenTimeout)
	defer cancel()
	c := g.Config
	switch {
	case g.Orders != nil && r.sandbox.route(c).Gate == "reserve":
		now, ok, err := g.Orders.Store.ReadStock(ctx, r.sandbox.SKU)
		if err != nil {
			return l, err
		}
		l.Total, l.Free, l.Held, l.Sold, l.Counted, l.Ledger = now.Total, now.Free, now.Held, now.Sold, ok, true
	case g.Stock != nil && r.sandbox.route(c).Gate != "limit":
		now, err := g.Store.Read(ctx, r.sandbox.SKU)
		if err != nil {
			return l, err
		}
		l.Total, l.Free, l.Sold, l.Counted = r.sandbox.Units, now.Left, r.sandbox.Units-now.Left, true
	}
	return l, nil
}

// addMetric takes one of the gate's own metrics in.
func addMetric(l *loadtest.GatewayReading, name string, m *dto.Metric) {
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
	case "process_cpu_seconds_total":
		l.CPU = time.Duration(m.GetCounter().GetValue() * 1e9)
	case "process_resident_memory_bytes":
		l.Memory = int64(m.GetGauge().GetValue())
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
		if err := r.on(name, func(ctx context.Context, c *redis.Client) error { return c.Del(ctx, name).Err() }); err != nil {
			return fmt.Errorf("take the keys of the load test away: %w; they end by themselves within %s", err, leftFor)
		}
	}
	return nil
}
