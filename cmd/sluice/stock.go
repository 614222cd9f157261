package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"sluice/admin"
	"sluice/config"
)

type stockCommand struct {
	Config    string `help:"Work on the store of this configuration, directly." placeholder:"FILE"`
	Admin     string `help:"Or through a running gate: its admin address." placeholder:"http://127.0.0.1:8090"`
	TokenFile string `help:"The token for --admin." type:"existingfile" placeholder:"FILE"`

	Get  stockGet  `cmd:"" help:"Show what is left of a SKU."`
	Set  stockSet  `cmd:"" help:"Set what is left of a SKU."`
	Add  stockAdd  `cmd:"" help:"Add to what is left of a SKU; a negative number takes away."`
	List stockList `cmd:"" help:"Show all SKUs."`
}

type stockGet struct {
	SKU string `arg:"" name:"sku"`
}

type stockSet struct {
	SKU  string `arg:"" name:"sku"`
	Left int64  `arg:"" name:"left" help:"Units, 0 or more."`
}

type stockAdd struct {
	SKU   string `arg:"" name:"sku"`
	Delta int64  `arg:"" name:"delta"`
}

type stockList struct {
	Limit int `default:"1000" help:"At most so many."`
}

// Validate is called by kong; its error is one of usage.
func (l *stockList) Validate() error {
	if l.Limit < 1 {
		return fmt.Errorf("--limit %d: it must be 1 or more", l.Limit)
	}
	return nil
}

// stockTimeout bounds a command on the stock, list included.
const stockTimeout = 10 * time.Second

func (g *stockGet) Run(s *stockCommand) error {
	return s.one(g.SKU, func(ctx context.Context, to admin.Store) (admin.Stock, error) { return to.Read(ctx, g.SKU) })
}

func (t *stockSet) Run(s *stockCommand) error {
	if t.Left < 0 {
		return fmt.Errorf("%d: a stock is 0 or more", t.Left)
	}
	return s.one(t.SKU, func(ctx context.Context, to admin.Store) (admin.Stock, error) { return to.Set(ctx, t.SKU, t.Left) })
}

func (a *stockAdd) Run(s *stockCommand) error {
	return s.one(a.SKU, func(ctx context.Context, to admin.Store) (admin.Stock, error) { return to.Add(ctx, a.SKU, a.Delta) })
}

func (l *stockList) Run(s *stockCommand) error {
	return s.with(func(ctx context.Context, to admin.Store) error {
		all, err := to.List(ctx, l.Limit)
		if err != nil {
			return err
		}
		for _, one := range all {
			print1(one)
		}
		if len(all) == 0 {
			fmt.Fprintln(os.Stderr, "no SKU has stock")
		}
		return nil
	})
}

func print1(s admin.Stock) {
	note := ""
	if !s.OnSale {
		note = "  (not on sale)"
	}
	fmt.Printf("%s\t%d%s\n", s.SKU, s.Left, note)
}

func (s *stockCommand) one(sku string, do func(context.Context, admin.Store) (admin.Stock, error)) error {
	if err := sellable(sku); err != nil {
		return err
	}
	return s.with(func(ctx context.Context, to admin.Store) error {
		now, err := do(ctx, to)
		if err == nil {
			print1(now)
		}
		return err
	})
}

// with finds the store: that of a running gate, or the Redis of a configuration.
func (s *stockCommand) with(do func(context.Context, admin.Store) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stockTimeout)
	defer cancel()
	if s.Admin != "" {
		remote, err := s.remote()
		if err != nil {
			return err
		}
		return do(ctx, remote)
	}
	file := s.Config
	if file == "" {
		file = "config.toml"
	}
	c, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return err
	}
	if c.Stock.Source != "redis" {
		return elsewhere(file, c)
	}
	r, err := openRedis(c)
	if err != nil {
		return err
	}
	defer r.Close()
	return do(ctx, store{r, r})
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

// remoteStore is the store of a running gate, through its control API.
type remoteStore struct {
	base, token string
	client      *http.Client
}

func (s *stockCommand) remote() (remoteStore, error) {
	var r remoteStore
	r.base, r.client = caller(s.Admin, stockTimeout)
	if s.TokenFile != "" {
		text, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return r, err
		}
		r.token = strings.TrimSpace(string(text))
	}
	return r, nil
}

func (r remoteStore) Read(ctx context.Context, sku string) (s admin.Stock, err error) {
	return s, r.call(ctx, "GET", "/"+url.PathEscape(sku), nil, &s)
}

func (r remoteStore) Set(ctx context.Context, sku string, left int64) (s admin.Stock, err error) {
	return s, r.call(ctx, "POST", "/"+url.PathEscape(sku), map[string]int64{"set": left}, &s)
}

func (r remoteStore) Add(ctx context.Context, sku string, delta int64) (s admin.Stock, err error) {
	return s, r.call(ctx, "POST", "/"+url.PathEscape(sku), map[string]int64{"add": delta}, &s)
}

func (r remoteStore) List(ctx context.Context, limit int) ([]admin.Stock, error) {
	var all struct{ Stock []admin.Stock }
	err := r.call(ctx, "GET", "", nil, &all)
	return all.Stock[:min(limit, len(all.Stock))], err
}

func (r remoteStore) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+"/api/v1/stock"+path, body)
	if err != nil {
		return err
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		var dial *net.OpError
		if errors.As(err, &dial) && dial.Op == "dial" {
			return fmt.Errorf("no gate answers at %s: %w", r.base, dial)
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&problem) != nil || problem.Detail == "" {
			problem.Detail = "is this the admin address of a gate?"
		}
		return fmt.Errorf("%s: %s", resp.Status, problem.Detail)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(out)
}
