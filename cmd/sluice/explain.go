package main

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/gateway"
	"sluice/gateway/stores"
	"sluice/internal/cli"
	"sluice/proxy"
	"sluice/proxy/param"
	"sluice/proxy/reject"
)

type explainOptions struct {
	header           []string
	body, ip, config string
}

func newExplain() *cobra.Command {
	o := explainOptions{config: "config.toml"}
	cmd := &cobra.Command{
		Use:   "explain <request>",
		Short: "Show the route, the checks and the keys of a request, or the meaning of a configuration key.",
		Long: "Show what the gateway would do with a request, such as 'POST /order/1001': its route, SKU, user, and the " +
			"checks in\n" +
			"their order. It asks no Redis and counts no limit. Or show a key of the configuration, such as\n" +
			"limits.window.max: its value, where that is from, and what changes it.\n" +
			"The exit code is 4 if the request would be rejected.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && strings.HasPrefix(args[1], "/") { // METHOD TARGET without quotes
				return nil
			}
			return cli.Exactly(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, strings.Join(args, " ")) },
		ValidArgsFunction: cli.CompleteBy(func(c *config.Config) (keys []string) {
			for _, s := range c.Settings() {
				keys = append(keys, s.Key)
			}
			return keys
		}),
	}
	cli.ConfigFlag(cmd, cmd.Flags(), &o.config, "configuration `file`")
	cmd.Flags().StringArrayVarP(&o.header, "header", "H", nil, "a header `line`, such as 'Cookie: uid=7'; may be repeated")
	cmd.Flags().StringVarP(&o.body, "body", "d", "", "the body")
	cmd.Flags().StringVar(&o.ip, "ip", exampleClient, "`address` at the other end of the connection")
	return cmd
}

// exampleClient is the address of a client that the command line does not name.
const exampleClient = "203.0.113.9"

func (o *explainOptions) run(cmd *cobra.Command, request string) error {
	peer, err := netip.ParseAddr(o.ip)
	if err != nil {
		return cli.Misuse(cmd, fmt.Errorf("--ip: %w", err))
	}
	if !strings.ContainsAny(request, " /") {
		return o.key(cmd.OutOrStdout(), request)
	}
	c, err := config.Load(o.config, os.LookupEnv, gateway.Validate)
	if err != nil {
		return err
	}
	found, err := gateway.Explain(c, o.raw(request), peer)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "request   %s\n", stores.PrintableName(requestLine(request)))
	printExplanation(cmd.OutOrStdout(), c, &found)
	if found.Reason != reject.Admitted && (c.Mode != "observe" || found.Route == "" || found.Reason.ClosesConnection()) {
		return errRejected
	}
	return nil
}

// key explains a key: what it is in the file or, where the file does not have it or is broken, what the reference says.
func (o *explainOptions) key(to io.Writer, name string) error {
	c, err := config.Load(o.config, os.LookupEnv, gateway.Validate)
	if err == nil && explainKey(to, c, name) {
		return nil
	}
	if line := inReference(config.WithoutIndexes(name)); line != "" {
		fmt.Fprintf(to, "key       %s\nreference %s\n", name, line)
		return err
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%q is neither a key of the configuration nor a request such as 'GET /'; "+
		"sluice config print lists the keys%s", name, cli.Meant(nearKey(c, name)))
}

// errRejected ends a command that has explained why a request would be rejected.
var errRejected error = cli.Exit(4)

// printExplanation prints what the gate makes of a request: one fact a line, its name first.
func printExplanation(to io.Writer, c *config.Config, found *proxy.Explanation) {
	note := ""
	if found.Client == exampleClient {
		note = " (example; --ip)"
	}
	fmt.Fprintf(to, "client    %s%s\n", found.Client, note)
	if c.Mode == "observe" {
		fmt.Fprintln(to, "mode      observe: rejections are counted and the request is forwarded; only what cannot be "+
			"forwarded is rejected")
	}
	if found.Reason != reject.Admitted {
		fmt.Fprintf(to, "rejected  %s\n", found.Reason)
		if found.Detail != "" {
			fmt.Fprintf(to, "detail    %s\n", found.Detail)
			if flags := missing(found.Detail); flags != "" {
				fmt.Fprintf(to, "try       %s\n", flags)
			}
		}
	}
	if found.Reason == reject.NoRoute {
		printRoutes(to, c)
	}
	if found.Internal {
		fmt.Fprintln(to, "answer    by Sluice itself, before any route (404 for an address that it does not have)")
		printChecks(to, found.Checks)
	}
	if found.Route == "" {
		return
	}
	fmt.Fprintf(to, "route     %s\n", found.Route)
	printGate(to, c, found.Route)
	if found.Bypass {
		fmt.Fprintf(to, "bypass    no limit applies to this client\n")
	}
	printKeys(to, "rate", found.Rates)
	printKeys(to, "in flight", found.InFlight)
	if found.SKU != "" {
		fmt.Fprintf(to, "sku       %s\n", stores.PrintableName(found.SKU))
	}
	if found.User != "" {
		fmt.Fprintf(to, "user      %s\n", stores.PrintableName(found.User))
	}
	if found.Quantity > 0 {
		fmt.Fprintf(to, "quantity  %d\n", found.Quantity)
	}
	if found.GuardsStock && found.SKU != "" && c.Stock.Source == "redis" {
		fmt.Fprintf(to, "stock     %s\n", stockPlace(c, found))
	}
	printChecks(to, slices.DeleteFunc(found.Checks, func(row proxy.CheckRow) bool {
		return row.Config == "sale" && len(c.Sales) == 0
	}))
}

// missing are the flags of explain that give what detail says is missing, by the variable at its end; "" = none.
func missing(detail string) string {
	at := strings.IndexByte(detail, '$')
	if at < 0 {
		return ""
	}
	v, err := param.Compile(detail[at:], nil)
	if err != nil {
		return ""
	}
	part := &v.Parts()[0]
	names := part.Names()
	switch part.Kind() {
	case param.JSON:
		return fmt.Sprintf(`-H 'Content-Type: application/json' -d '{"%s": 1%s'`,
			strings.Join(names, `": {"`), strings.Repeat("}", len(names)))
	case param.Form:
		return fmt.Sprintf("-H 'Content-Type: application/x-www-form-urlencoded' -d '%s=1'", url.QueryEscape(names[0]))
	case param.Cookie:
		return fmt.Sprintf("-H 'Cookie: %s=1'", names[0])
	case param.Header:
		return fmt.Sprintf("-H '%s: 1'", names[0])
	}
	return ""
}

// printRoutes prints what the routes match, for a request that none matches.
func printRoutes(to io.Writer, c *config.Config) {
	const most = 10
	for _, r := range c.Routes[:min(most, len(c.Routes))] {
		fmt.Fprintf(to, "no match  %s (route %s)\n", r.Match, r.Name)
	}
	if more := len(c.Routes) - most; more > 0 {
		fmt.Fprintf(to, "no match  %d routes more: sluice config print\n", more)
	}
}

// printKeys prints by what limits of keys count the request, and what holds for that key.
func printKeys(to io.Writer, word string, keys []proxy.RateKey) {
	for _, r := range keys {
		fmt.Fprintf(to, "%-9s %s counts it by %s\n", word, r.Name, cmp.Or(r.Key, "nothing: the request lacks the key"))
		if r.Key != "" {
			fmt.Fprintf(to, "          %s\n", r.Bound)
		}
	}
}

// printGate prints the gate of a route, where it is configured, and for how long the upstream is waited for.
func printGate(to io.Writer, c *config.Config, route string) {
	for i := range c.Routes {
		if c.Routes[i].Name == route {
			fmt.Fprintf(to, "gate      %s (%s)\n", c.Routes[i].Gate, c.At(fmt.Sprintf("route[%d]", i+1)))
			printReading(to, &c.Routes[i])
			wait, key := c.Upstream.ResponseHeaderTimeout, "upstream.response_header_timeout"
			if own := c.Routes[i].Timeout; own > 0 {
				wait, key = own, "route.timeout"
			}
			fmt.Fprintf(to, "timeout   %s to the header of the response (%s)\n", wait, key)
		}
	}
}

// printReading prints what else than the place of its variables a route looks at.
func printReading(to io.Writer, r *config.Route) {
	switch variables := r.SKU + r.User + r.Quantity; {
	case r.Gate == "pass" || !strings.Contains(variables, "$form_") && !strings.Contains(variables, "$arg_"):
	case r.Sources == "one":
		fmt.Fprintln(to, "sources   one: query and form may contradict each other")
	default:
		fmt.Fprintln(to, "sources   all: another value in the query, or in a form, is ambiguous")
	}
	if r.SKUForm == "digits" {
		fmt.Fprintln(to, "sku form  digits: other spellings of a number are rejected")
	}
}

// printChecks prints the checks that the request would have to pass, in their order.
func printChecks(to io.Writer, checks []proxy.CheckRow) {
	for i, row := range checks {
		fmt.Fprintf(to, "check %-3d %s (%s)", i+1, row.Name, row.Config)
		if row.Value != "" { // it may begin with the table that the key is in
			table, bound, _ := strings.Cut(row.Value, ": ")
			if !strings.HasPrefix(row.Config, table) {
				bound = row.Value
			}
			fmt.Fprintf(to, ": %s", bound)
		}
		if row.Observed {
			fmt.Fprint(to, "; only observed")
		}
		fmt.Fprintf(to, ": %s\n", strings.Join(row.Reasons, ", "))
	}
}

// stockPlace is where the stock lies that the request is about.
func stockPlace(c *config.Config, found *proxy.Explanation) string {
	if slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Name == found.Route && r.Gate == "reserve" }) {
		return stores.Name(c).SKUKey(found.SKU, "s") + " in Redis (ledger)"
	}
	l, err := stores.ShopLayout(c)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s in Redis (%s)", l.Key(found.SKU), c.Stock.Layout.Type)
}

// requestLine is the method and target of request: GET unless it names another method.
func requestLine(request string) string {
	line := strings.TrimSpace(request)
	if !strings.Contains(line, " ") {
		line = "GET " + line
	}
	return line
}

// raw is the request as a client would send it.
func (o *explainOptions) raw(request string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s HTTP/1.1\r\n", requestLine(request))
	host := false
	for _, h := range o.header {
		name, _, _ := strings.Cut(h, ":")
		host = host || strings.EqualFold(strings.TrimSpace(name), "host")
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	if !host {
		b.WriteString("Host: shop\r\n")
	}
	if o.body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(o.body))
	}
	b.WriteString("\r\n" + o.body)
	return b.String()
}

// nearKey is the key of the configuration that ends with key, or is most like it; "" = none is.
func nearKey(c *config.Config, key string) string {
	var keys []string
	for _, s := range c.Settings() {
		bare := config.WithoutIndexes(s.Key)
		if strings.HasSuffix(bare, "."+key) {
			return bare
		}
		keys = append(keys, bare)
	}
	return config.Nearest(key, keys)
}
