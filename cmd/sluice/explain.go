package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"sluice/config"
	"sluice/proxy"
)

type explainCommand struct {
	Request string   `arg:"" help:"METHOD and target, such as 'POST /api/seckill/1001/order'; or a key of the configuration, such as limits.window.max."`
	Header  []string `short:"H" sep:"none" help:"A header line; may be repeated." placeholder:"'Cookie: uid=7'"`
	Body    string   `short:"d" help:"The body."`
	IP      string   `name:"ip" help:"The address at the other end of the connection." default:"203.0.113.9"`
	Config  string   `help:"The configuration file." default:"config.toml" placeholder:"FILE"`
}

func (e *explainCommand) Run() error {
	c, err := config.Load(e.Config, os.LookupEnv, compiles)
	if err != nil {
		return err
	}
	if !strings.ContainsAny(e.Request, " /") {
		if !explainKey(os.Stdout, c, e.Request) {
			return fmt.Errorf("%q is no key of the configuration, and no request such as 'GET /': sluice config print lists the keys", e.Request)
		}
		return nil
	}
	peer, err := netip.ParseAddr(e.IP)
	if err != nil {
		return fmt.Errorf("--ip: %w", err)
	}
	options := proxyOptions(c)
	options.Settling = settling(&c.Stock.Reserve)
	p, err := proxy.New(options)
	if err != nil {
		return err
	}
	found := p.Explain(e.raw(), peer, int(c.Server.MaxHeaderSize))
	fmt.Printf("client    %s\n", found.Client)
	if found.Reason != proxy.Admitted {
		fmt.Printf("refused   %s %s\n", found.Reason, found.Detail)
	}
	if found.Route == "" {
		return nil
	}
	fmt.Printf("route     %s\n", found.Route)
	for i := range c.Routes {
		if c.Routes[i].Name != found.Route {
			continue
		}
		fmt.Printf("gate      %s (%s)\n", c.Routes[i].Gate, c.At(fmt.Sprintf("route[%d]", i+1)))
		if c.Routes[i].Gate != "pass" {
			limit, window := c.Limits.Connection, c.Limits.Window
			fmt.Printf("limits    %g/s a connection, burst %d; window of this %s: all %s, this SKU %s; %d in flight, %d in the queue for %s\n",
				float64(limit.Rate), limit.Burst, window.Scope, perSecond(window.Max, window.Size), perSecond(window.MaxPerSKU, window.Size),
				c.Limits.Concurrency.MaxInFlight, c.Limits.Concurrency.MaxQueue, c.Limits.Concurrency.QueueTimeout)
			if own := c.Routes[i].MaxInFlight; own > 0 {
				fmt.Printf("          of them %d in flight of this route\n", own)
			}
		}
	}
	if found.Bypass {
		fmt.Printf("bypass    no limit applies to this client\n")
	}
	for _, r := range found.Rates {
		fmt.Printf("rate      %s counts it by %s\n", r.Name, cmp.Or(r.Key, "nothing: the request lacks the key"))
	}
	if found.SKU != "" {
		fmt.Printf("sku       %s\n", found.SKU)
	}
	if found.User != "" {
		fmt.Printf("user      %s\n", found.User)
	}
	if found.Stocked && found.SKU != "" && c.Stock.Source == "redis" {
		fmt.Printf("stock     %s\n", place(c, found))
	}
	return nil
}

// place is where the stock lies that the request is about.
func place(c *config.Config, found proxy.Explanation) string {
	if slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Name == found.Route && r.Gate == "reserve" }) {
		return fmt.Sprintf("sluice:{%s}:s in Redis (ledger)", found.SKU)
	}
	l, err := shopLayout(c)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s in Redis (%s)", l.Key(found.SKU), c.Stock.Layout.Type)
}

// raw is the request as a client would send it.
func (e *explainCommand) raw() string {
	line := strings.TrimSpace(e.Request)
	if !strings.Contains(line, " ") {
		line = "GET " + line
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s HTTP/1.1\r\n", line)
	host := false
	for _, h := range e.Header {
		name, _, _ := strings.Cut(h, ":")
		host = host || strings.EqualFold(strings.TrimSpace(name), "host")
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	if !host {
		b.WriteString("Host: shop\r\n")
	}
	if e.Body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(e.Body))
	}
	b.WriteString("\r\n" + e.Body)
	return b.String()
}
