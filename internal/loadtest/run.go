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
	Config       string // path of the configuration
	Route        string // the route that is tested; "" = the first that sells
	Buyers       int
	Stock        int64         // units
	Shape        string        // Spike or Ramp
	Spread       time.Duration // Spike: half of the buyers have ordered by then; Ramp: all of them have; 0 = usual
	GiveUpAfter  time.Duration // after the last buyer has come, all give up
	Tries        int           // orders of one buyer at most
	Addresses    int           // of clients; 0 = one for each buyer
	Connections  int           // that the buyers share; 0 = as many as the gateway can keep waiting
	ShopCapacity int           // orders that the stand-in upstream works on at a time
	ShopLatency  time.Duration // for one order
	ShopErrors   int           // of a hundred orders, how many it answers with 500
	Progress     io.Writer     // is told what begins; nil = nothing
}

// Check reports what is out of range, by the name of its flag.
func (r *SandboxOptions) Check() error {
	switch {
	case r.Buyers < 1 || r.Buyers > MostBuyers:
		return fmt.Errorf("--buyers %d: it takes 1 to %d", r.Buyers, MostBuyers)
	case r.Stock < 1:
		return fmt.Errorf("--stock %d: it takes 1 or more", r.Stock)
	case r.Spread < 0 || r.Spread > 5*time.Minute:
		return fmt.Errorf("--over %s: it takes up to 5m", r.Spread)
	case r.GiveUpAfter <= 0 || r.GiveUpAfter > 15*time.Minute:
		return fmt.Errorf("--patience %s: it takes up to 15m", r.GiveUpAfter)
	case r.Tries < 1 || r.Tries > 255:
		return fmt.Errorf("--tries %d: it takes 1 to 255", r.Tries)
	case r.Addresses < 0 || r.Connections < 0 || r.Connections > 20_000:
		return fmt.Errorf("--addresses and --connections must not be negative, nor --connections above 20000")
	case r.ShopCapacity < 1 || r.ShopLatency < 0 || r.ShopErrors < 0 || r.ShopErrors > 100:
		return fmt.Errorf("--shop-capacity takes 1 or more, --shop-latency no negative time, --shop-errors 0 to 100")
	}
	return nil
}

// Run puts a shop behind a gateway of the configuration, and lets the crowd in.
func (r *SandboxOptions) Run(ctx context.Context) (result Result, err error) {
	s := &sandbox{ID: strings.ToLower(rand.Text()[:16]), File: r.Config, Route: r.Route, Units: r.Stock,
		Until: time.Now().Add(Longest(r.Shape, r.over(), r.GiveUpAfter))}
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
	result, err = Run(ctx, Plan{
		Front: gate.front, Order: s.order(c), Room: s.route(c).Room, Buyers: r.Buyers, Addresses: r.Addresses,
		Shape: r.Shape, Spread: r.over(), GiveUpAfter: r.GiveUpAfter, Tries: r.Tries,
		Connections: s.connections(c, r.Connections), Shop: shop, Gate: gate, Limits: s.limits(c),
	})
	result.NotTested = not
	return result, err
}

func (r *SandboxOptions) over() time.Duration {
	if r.Spread != 0 {
		return r.Spread
	}
	return map[string]time.Duration{Spike: 300 * time.Millisecond, Ramp: time.Minute}[r.Shape]
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
