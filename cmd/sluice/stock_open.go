package main

import (
	"context"
	"log/slog"
	"time"

	"sluice/stockgate"
)

// openStock makes the stock gate and what it reads.
func (g *gate) openStock(memory *stockgate.Memory, log *slog.Logger) error {
	c := g.config
	var source stockgate.Source
	switch c.Stock.Source {
	case "off":
		return nil
	case "memory":
		if memory == nil {
			memory = stockgate.NewMemory()
		}
		source, g.store = memory, store{memory, memory}
	default:
		r, err := openRedis(c, log)
		if err != nil {
			return err
		}
		if err := fits(c, r); err != nil {
			_ = r.Close()
			return err
		}
		g.redis, source, g.store = r, r, store{r, r}
		g.metrics.MustRegister(r)
	}
	var err error
	g.stock, err = stockgate.New(stockgate.Options{
		Refresh:       c.Stock.Refresh,
		SoldOutMemory: c.Stock.SoldOutMemory,
		PerUnit:       c.Stock.PerUnit,
		Instances:     g.sharing.instances,
		AllowOnError:  c.Stock.OnError == "allow",
		AllowUnknown:  c.Stock.UnknownSKU == "allow",
		Wait:          c.Stock.Redis.Timeout + 50*time.Millisecond, // one command, and its turn
		Bought:        g.bought(),
		Now:           g.now,
		Log:           log,
	}, source)
	if err == nil {
		g.metrics.MustRegister(g.stock)
	}
	return err
}

// bought asks the shop's own set who has bought; nil when it keeps none.
func (g *gate) bought() func(context.Context, []stockgate.Buyer) error {
	if g.redis == nil || !g.redis.HasUsers() {
		return nil
	}
	return g.redis.Bought
}
