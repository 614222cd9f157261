package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sluice/config"
	"sluice/proxy/route"
)

type checkCommand struct {
	File   string   `arg:"" optional:"" default:"config.toml" help:"The configuration file."`
	Online bool     `help:"Also try Redis, and whether what is sold has stock there; exit code 3 when that fails."`
	JSON   bool     `help:"With --online: one JSON object, for other programs."`
	SKU    []string `help:"With --online: a SKU that must have stock, besides those of the sales." placeholder:"SKU"`
}

// Validate is called when the line is read; its error is one of usage.
func (k *checkCommand) Validate() error {
	if len(k.SKU) > 0 && !k.Online {
		return errors.New("--sku belongs to --online")
	}
	if k.JSON && !k.Online {
		return errors.New("--json belongs to --online")
	}
	return nil
}

func (k *checkCommand) Run() error {
	c, err := config.Load(k.File, os.LookupEnv, compiles)
	if err == nil && c.Stock.Source == "redis" {
		_, err = shopLayout(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return errSaid
	}
	if k.JSON {
		return k.online(c, true)
	}
	fmt.Printf("%s: nothing wrong\n\n", k.File)
	arithmetic(os.Stdout, c)
	if !k.Online {
		return nil
	}
	fmt.Println()
	return k.online(c, false)
}

// online runs the online checks, and shows them as they come, or all together in JSON.
func (k *checkCommand) online(c *config.Config, together bool) error {
	o := online{out: os.Stdout, file: k.File, together: together}
	if err := o.try(context.Background(), c, k.SKU); err != nil {
		return err
	}
	if together {
		if err := o.tellJSON(); err != nil {
			return err
		}
	}
	if o.failed {
		return errOnline
	}
	return nil
}

// arithmetic says in numbers what the configuration amounts to: what operators get wrong.
func arithmetic(w io.Writer, c *config.Config) {
	fmt.Fprintf(w, "mode      %s\n", c.Mode)
	for _, r := range c.Routes {
		fmt.Fprintf(w, "route     %-18s %-6s %s\n", r.Name, r.Gate, r.Match)
	}
	reckonWindows(w, c)
	for i := range c.Limits.Rates {
		fmt.Fprintf(w, "rate      %s\n", sayRates(&c.Limits.Rates[i]))
	}
	inside := c.Limits.Concurrency.MaxInFlight
	fmt.Fprintf(w, "in flight at most %d inside the shop: at 50ms an order that is %d/s, at 500ms %d/s (Little's law)\n",
		inside, inside*20, inside*2)
	sayInFlight(w, c)
	if c.Stock.Source == "redis" && hasGate(c, "check") {
		fmt.Fprintf(w, "redis     at most %d readings a second of a SKU that is asked for, whatever the traffic, "+
			"many SKUs at once; none otherwise but a ping a second\n", int(time.Second/c.Stock.Refresh))
	}
	if reserves(c) {
		reckonReserve(w, c)
	}
	tellSales(w, c)
	tellCached(w, c)
	tellTopology(w, c)
	tellLayout(w, c)
	fmt.Fprintf(w, "log       %s\n", sayAccessLog(&c.AccessLog))
	if denied, bypassed := len(c.Limits.Denied), len(c.Limits.Bypassed); denied+bypassed > 0 {
		fmt.Fprintf(w, "lists     %d networks denied, %d never limited\n", denied, bypassed)
	}
	if drives(c) {
		reckonDriver(w, c)
	}
	perIP := c.Limits.Connection.MaxOpenPerIP
	fmt.Fprintf(w, "addresses at most %d connections of one address: shoppers behind one NAT share them\n", perIP)
	if len(c.Server.TrustedProxies) == 0 {
		fmt.Fprintf(w, "warning   server.trusted_proxies is empty: behind a proxy or CDN all shoppers would be one address\n")
	}
	if c.Stock.Source == "memory" && stocked(c) {
		fmt.Fprintf(w, "warning   stock.source is \"memory\": for trials; "+
			"set the stock with sluice stock set --admin, it is forgotten at exit\n")
	}
}

func stocked(c *config.Config) bool {
	for _, r := range c.Routes {
		if gates[r.Gate] >= route.Check {
			return true
		}
	}
	return false
}
