package loadtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/load"
	"sluice/stockgate/redisconn"
)

// SandboxOptions are the size and the shape of a load test.
type SandboxOptions struct {
	Crowd
	Config       string        // path of the configuration
	Route        string        // the route that is tested; "" = the first that sells
	Stock        int64         // units
	ShopCapacity int           // orders that the stand-in upstream works on at a time
	ShopLatency  time.Duration // for one order
	ShopErrors   int           // of a hundred orders, how many it answers with 500
	Progress     io.Writer     // is told what begins; nil = nothing
}

// Check reports what is out of range, by the name of its flag.
func (r *SandboxOptions) Check() error {
	switch {
	case r.Stock < 1:
		return fmt.Errorf("--stock %d: it takes 1 or more", r.Stock)
	case r.ShopCapacity < 1 || r.ShopLatency < 0 || r.ShopErrors < 0 || r.ShopErrors > 100:
		return fmt.Errorf("--shop-capacity takes 1 or more, --shop-latency no negative time, --shop-errors 0 to 100")
	}
	return r.Crowd.Check()
}

// Run puts a shop behind a gateway of the configuration, and lets the crowd in.
func (r *SandboxOptions) Run(ctx context.Context) (result Result, err error) {
	s := &sandbox{ID: strings.ToLower(rand.Text()[:16]), File: r.Config, Route: r.Route, Units: r.Stock,
		Until: time.Now().Add(r.longest())}
	c, not, err := s.load(os.LookupEnv)
	if err != nil {
		return result, err
	}
	o := s.shop(c)
	o.Capacity, o.Latency, o.Fault = r.ShopCapacity, r.ShopLatency, load.Failing(float64(r.ShopErrors)/100)
	var gate *testedGateway
	done, err := r.takes(c, s, &gate, &o)
	if err != nil {
		return result, err
	}
	defer done()
	shop, err := load.OpenShop(o)
	if err != nil {
		return result, err
	}
	defer shop.Close()
	s.sendTo(c, shop.Addr())
	if gate, err = raise(s, c); err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, gate.strike()) }()
	if r.Progress != nil {
		fmt.Fprintf(r.Progress, "load test of %s, route %q (%s): %d buyers, %d units, %s\n\n", r.Config, s.Route,
			s.route(c).Gate, r.Buyers, r.Stock, r.Shape)
	}
	plan := Plan{Crowd: r.Crowd, Front: gate.front, Order: s.order(c), Room: s.route(c).Room, Shop: shop, Gate: gate,
		Limits: s.limits(c)}
	plan.Connections = s.connections(c, r.Connections)
	result, err = Run(ctx, plan)
	result.NotTested = not
	return result, err
}

// A shop waits for its Redis longer than a gate, and has a connection for each order that it works on.
const (
	shopPatience    = 5 * time.Second
	mostConnections = 512
)

// takes has a shop that takes its stock itself do so where the gateway reads it: in Redis over a way of its own, whose
// commands are not the gateway's; in memory from the gateway that gate is going to point at.
func (r *SandboxOptions) takes(c *config.Config, s *sandbox, gate **testedGateway, o *load.ShopOptions) (done func(),
	err error) {
	if s.route(c).Gate != "check" {
		return func() {}, nil
	}
	if c.Stock.Source == "memory" {
		o.Take = s.take(func(ctx context.Context) error {
			_, err := (*gate).gate.Store.Add(ctx, s.SKU, -1)
			return err
		})
		return func() {}, nil
	}
	way := stores.RedisOptions(c)
	way.PoolSize, way.Timeout, way.ConnectTimeout, way.BreakerErrors = min(r.ShopCapacity, mostConnections)+1,
		shopPatience, shopPatience, redisconn.Unbroken
	own, err := stores.OpenShopStockBy(way, c, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	o.Take = s.take(func(ctx context.Context) error {
		_, err := own.Add(ctx, s.SKU, -1)
		return err
	})
	return func() { _ = own.Close() }, nil
}

// take counts the units of a shop by itself, and writes each that is sold into the stock that the gateway reads.
func (s *sandbox) take(write func(context.Context) error) func(context.Context) (bool, error) {
	var sold atomic.Int64
	return func(ctx context.Context) (bool, error) {
		if sold.Add(1) > s.Units {
			return false, nil
		}
		return true, write(ctx)
	}
}
