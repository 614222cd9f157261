package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"sluice/config"
	"sluice/proxy"
	"sluice/proxy/reject"
)

type explainCommand struct {
	Request string   `arg:"" help:"METHOD and target, such as 'POST /order/1001'; or a key, such as limits.window.max."`
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
	peer, err := netip.ParseAddr(e.IP)
	if err != nil {
		return fmt.Errorf("--ip: %w", err)
	}
	if !strings.ContainsAny(e.Request, " /") {
		if !explainKey(os.Stdout, c, e.Request) {
			return fmt.Errorf("%q is no key of the configuration, and no request such as 'GET /': "+
				"sluice config print lists the keys", e.Request)
		}
		return nil
	}
	options := proxyOptions(c)
	options.Settlement, options.Bounds = settlement(&c.Stock.Reserve), bounds(c)
	p, err := proxy.New(options)
	if err != nil {
		return err
	}
	found := p.Explain(e.raw(), peer, int(c.Server.MaxHeaderSize), c.Server.LenientTarget)
	printExplanation(os.Stdout, c, &found)
	if found.Reason != reject.Admitted {
		return errRejected
	}
	return nil
}

// errRejected ends a command that has explained why a request would be rejected.
var errRejected = errors.New("the request would be rejected")

// printExplanation prints what the gate makes of a request: one fact a line, its name first.
func printExplanation(to io.Writer, c *config.Config, found *proxy.Explanation) {
	fmt.Fprintf(to, "client    %s\n", found.Client)
	if found.Reason != reject.Admitted {
		fmt.Fprintf(to, "rejected  %s\n", found.Reason)
		if found.Detail != "" {
			fmt.Fprintf(to, "detail    %s\n", found.Detail)
		}
	}
	if found.Route == "" {
		return
	}
	fmt.Fprintf(to, "route     %s\n", found.Route)
	printGate(to, c, found.Route)
	if found.Bypass {
		fmt.Fprintf(to, "bypass    no limit applies to this client\n")
	}
	for _, r := range found.Rates {
		fmt.Fprintf(to, "rate      %s counts it by %s\n", r.Name, cmp.Or(r.Key, "nothing: the request lacks the key"))
	}
	if found.SKU != "" {
		fmt.Fprintf(to, "sku       %s\n", found.SKU)
	}
	if found.User != "" {
		fmt.Fprintf(to, "user      %s\n", found.User)
	}
	if found.GuardsStock && found.SKU != "" && c.Stock.Source == "redis" {
		fmt.Fprintf(to, "stock     %s\n", place(c, found))
	}
	printChecks(to, found.Checks)
}

// printGate prints the gate of a route, and where it is configured.
func printGate(to io.Writer, c *config.Config, route string) {
	for i := range c.Routes {
		if c.Routes[i].Name == route {
			fmt.Fprintf(to, "gate      %s (%s)\n", c.Routes[i].Gate, c.At(fmt.Sprintf("route[%d]", i+1)))
		}
	}
}

// printChecks prints the checks that the request would have to pass, in their order.
func printChecks(to io.Writer, checks []proxy.CheckRow) {
	for i, row := range checks {
		fmt.Fprintf(to, "check %-3d %s (%s)", i+1, row.Name, row.Config)
		if row.Value != "" {
			fmt.Fprintf(to, ": %s", row.Value)
		}
		if row.Observed {
			fmt.Fprint(to, "; only observed")
		}
		fmt.Fprintf(to, ": %s\n", strings.Join(row.Reasons, ", "))
	}
}

// place is where the stock lies that the request is about.
func place(c *config.Config, found *proxy.Explanation) string {
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
