package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"sluice/config"
	"sluice/rehearsal"
	"sluice/stockgate/link"
)

type rehearseCommand struct {
	Config       string        `help:"The configuration file." default:"config.toml" placeholder:"FILE"`
	Route        string        `help:"The route that is rehearsed; by default the first that sells." placeholder:"NAME"`
	Buyers       int           `help:"How many want it." default:"200000"`
	Stock        int64         `help:"How many units there are." default:"500"`
	Shape        string        `help:"spike: all want it at once; ramp: as many in each second." enum:"spike,ramp" default:"spike"`
	Over         time.Duration `help:"spike: half of them have pressed by then (300ms); ramp: all of them have (60s)." placeholder:"60s"`
	Patience     time.Duration `help:"After the last of them has come they all go home." default:"60s"`
	Tries        int           `help:"How often one of them orders at most." default:"20"`
	Addresses    int           `help:"How many addresses they come from; by default each has one." placeholder:"N"`
	Connections  int           `help:"That the crowd shares; by default as many as the gate can keep waiting." placeholder:"N"`
	ShopCapacity int           `help:"Orders that the stand-in shop works on at a time." default:"64"`
	ShopLatency  time.Duration `help:"What it works on one." default:"20ms"`
	ShopErrors   int           `help:"Of a hundred orders, those of which it answers 500 and makes none." default:"0"`
	Plot         string        `help:"Draw the course of the sale into this file, as SVG." placeholder:"FILE"`
	JSON         bool          `help:"One JSON object, for other programs."`
}

// Validate is called when the line is read; its error is one of usage.
func (r *rehearseCommand) Validate() error {
	switch {
	case r.Buyers < 1 || r.Buyers > rehearsal.MostBuyers:
		return fmt.Errorf("--buyers %d: it takes 1 to %d", r.Buyers, rehearsal.MostBuyers)
	case r.Stock < 1:
		return fmt.Errorf("--stock %d: it takes 1 or more", r.Stock)
	case r.Over < 0 || r.Over > 5*time.Minute:
		return fmt.Errorf("--over %s: it takes up to 5m", r.Over)
	case r.Patience <= 0 || r.Patience > 15*time.Minute:
		return fmt.Errorf("--patience %s: it takes up to 15m", r.Patience)
	case r.Tries < 1 || r.Tries > 255:
		return fmt.Errorf("--tries %d: it takes 1 to 255", r.Tries)
	case r.Addresses < 0 || r.Connections < 0 || r.Connections > 20_000:
		return fmt.Errorf("--addresses and --connections must not be negative, nor --connections above 20000")
	case r.ShopCapacity < 1 || r.ShopLatency < 0 || r.ShopErrors < 0 || r.ShopErrors > 100:
		return fmt.Errorf("--shop-capacity takes 1 or more, --shop-latency no negative time, --shop-errors 0 to 100")
	}
	return nil
}

func (r *rehearseCommand) Run() error {
	if os.Getenv(isGate) != "" {
		return beGate()
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	result, err := r.rehearse(ctx)
	if bad := (*config.Error)(nil); errors.As(err, &bad) {
		fmt.Fprintln(os.Stderr, err) // each of its lines says where it is
		return errSaid
	}
	if err != nil {
		return err
	}
	if r.Plot != "" {
		if err := os.WriteFile(r.Plot, result.Plot(), 0o644); err != nil {
			return err
		}
	}
	if r.JSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		err = e.Encode(result)
	} else {
		_, err = result.WriteTo(os.Stdout)
	}
	if err != nil {
		return err
	}
	if result.Err() != nil {
		if r.JSON {
			fmt.Fprintln(os.Stderr, "sluice: BROKEN", result.Err())
		}
		return errSaid
	}
	return nil
}

// rehearse puts a shop behind a gate of the configuration, and lets the crowd in.
func (r *rehearseCommand) rehearse(ctx context.Context) (result rehearsal.Result, err error) {
	s := &shadow{ID: shadowID(), File: r.Config, Route: r.Route, Units: r.Stock, Shop: "127.0.0.1:1", Until: time.Now().Add(rehearsal.Longest(r.Shape, r.over(), r.Patience))}
	c, not, err := s.load(os.LookupEnv)
	if err != nil {
		return result, err
	}
	o := s.shop(c)
	o.Capacity, o.Latency, o.Errors = r.ShopCapacity, r.ShopLatency, float64(r.ShopErrors)/100
	child := &gateChild{}
	done, err := r.takes(c, s, child, &o)
	if err != nil {
		return result, err
	}
	defer done()
	shop, err := rehearsal.OpenShop(o)
	if err != nil {
		return result, err
	}
	defer shop.Close()
	s.Shop = shop.Addr()
	front, err := child.start(s)
	if err != nil {
		return result, err
	}
	defer func() {
		if ended := child.end(); err == nil {
			err = ended
		}
	}()
	if !r.JSON {
		fmt.Printf("rehearsing %s, route %q (%s): %d buyers, %d units, %s\n\n", r.Config, s.Route, s.route(c).Gate, r.Buyers, r.Stock, r.Shape)
	}
	result, err = rehearsal.Run(ctx, r.plan(c, s, shop, child, front))
	result.NotRehearsed = not
	return result, err
}

func (r *rehearseCommand) over() time.Duration {
	if r.Over != 0 {
		return r.Over
	}
	return map[string]time.Duration{rehearsal.Spike: 300 * time.Millisecond, rehearsal.Ramp: time.Minute}[r.Shape]
}

func (r *rehearseCommand) plan(c *config.Config, s *shadow, shop *rehearsal.Shop, child *gateChild, front string) rehearsal.Plan {
	return rehearsal.Plan{
		Front: front, Order: s.order(c), Buyers: r.Buyers, Addresses: r.Addresses, Shape: r.Shape, Over: r.over(),
		Patience: r.Patience, Tries: r.Tries, Connections: s.connections(c, r.Connections), Shop: shop, Gate: child, Limits: s.limits(c),
	}
}

// A shop waits for its Redis longer than a gate, and has a connection for each order that it works on.
const (
	shopPatience    = 5 * time.Second
	mostConnections = 512
)

// takes has a shop that takes its stock itself do so where the gate reads it: in Redis over a way of its own, whose
// commands are not the gate's; in memory by telling the gate.
func (r *rehearseCommand) takes(c *config.Config, s *shadow, child *gateChild, o *rehearsal.ShopOptions) (done func(), err error) {
	if s.route(c).Gate != "check" {
		return func() {}, nil
	}
	if c.Stock.Source == "memory" {
		o.Take = func(context.Context) error { return child.send(told{Taken: 1}) }
		return func() {}, nil
	}
	patient := *c
	way := &patient.Stock.Redis
	way.PoolSize, way.Timeout, way.ConnectTimeout, way.BreakerErrors = min(r.ShopCapacity, mostConnections)+1, shopPatience, shopPatience, link.Unbroken
	own, err := openRedis(&patient, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	o.Take = func(ctx context.Context) error {
		_, err := own.Add(ctx, s.SKU, -1)
		return err
	}
	return func() { _ = own.Close() }, nil
}
