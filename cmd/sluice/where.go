package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"sluice/admin"
	"sluice/config"
)

// where says on what a command works: a running gate, or the Redis of a configuration.
type where struct {
	Config    string `help:"Work on the Redis of this configuration, directly. Default: config.toml." placeholder:"FILE"`
	Admin     string `help:"Or through a running gate: its admin address." placeholder:"http://127.0.0.1:8090"`
	TokenFile string `help:"The token for --admin." type:"existingfile" placeholder:"FILE"`
}

// operateWithin bounds a command on the stock, lists included.
const operateWithin = 10 * time.Second

// open finds what to speak to. Without a gate the same API answers from within this process, so that every rule and
// every word is the same. done must be called in the end.
func (w *where) open() (c client, done func(), err error) {
	if w.Admin != "" {
		c.base, c.http = caller(w.Admin, operateWithin)
		if w.TokenFile == "" {
			return c, func() {}, nil
		}
		text, err := os.ReadFile(w.TokenFile)
		c.token = strings.TrimSpace(string(text))
		return c, func() {}, err
	}
	file := w.Config
	if file == "" {
		file = "config.toml"
	}
	loaded, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return c, nil, err
	}
	if loaded.Stock.Source != "redis" {
		return c, nil, elsewhere(file, loaded)
	}
	return within(patient(loaded))
}

// patient is c for somebody who would rather wait for Redis than hear that it was slow: for a command, not for shoppers.
func patient(c *config.Config) *config.Config {
	p := *c
	p.Stock.Redis.Timeout, p.Stock.Redis.ConnectTimeout = max(c.Stock.Redis.Timeout, commandWaits), max(c.Stock.Redis.ConnectTimeout, commandWaits)
	return &p
}

// commandWaits is how long a command waits for one of Redis.
const commandWaits = 2 * time.Second

// within is a client of the API over the Redis of c.
func within(c *config.Config) (to client, done func(), err error) {
	api := admin.API{Log: slog.New(slog.DiscardHandler)}
	var opened []func() error
	done = func() {
		for _, end := range opened {
			_ = end()
		}
	}
	if hasGate(c, "check") || !reserves(c) {
		r, err := openRedis(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return to, nil, err
		}
		opened = append(opened, r.Close)
		api.Store = store{r, r}
	}
	if reserves(c) {
		r, err := openLedger(c, true, slog.Default())
		if err != nil {
			done()
			return to, nil, err
		}
		opened = append(opened, r.Close)
		api.Ledgers = ledgersOf(c, r, nil)
	}
	if len(c.Sales) > 0 {
		board, err := newBoard(c, slog.New(slog.DiscardHandler))
		if err != nil {
			done()
			return to, nil, err
		}
		opened = append(opened, func() error { board.Close(); return nil })
		sales := salesOf{board: board}
		if l, ok := api.Ledgers.(ledgers); ok {
			sales.ledgers = &l
		}
		api.Sales = sales
	}
	return client{base: "http://localhost", http: &http.Client{Transport: inside{api.Handler()}, CheckRedirect: here}}, done, nil
}

// elsewhere tells who knows a stock that is not in Redis.
func elsewhere(file string, c *config.Config) error {
	switch {
	case c.Stock.Source == "off":
		return fmt.Errorf("stock.source of %s is \"off\": no stock is kept", file)
	case c.Admin.Listen == "":
		return fmt.Errorf("stock.source of %s is %q, which only a running gate knows, and its admin.listen is \"\": it cannot be asked", file, c.Stock.Source)
	}
	return fmt.Errorf("stock.source of %s is %q: only a running gate knows that stock; add --admin %s", file, c.Stock.Source, c.Admin.Listen)
}

// Validate is called when the line is read; its error is one of usage.
func (w *where) Validate() error {
	if w.Admin != "" && w.Config != "" {
		return errors.New("--config and --admin: name one of them")
	}
	if w.TokenFile != "" && w.Admin == "" {
		return errors.New("--token-file belongs to --admin")
	}
	return nil
}
