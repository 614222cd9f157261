// Package doctor examines a configuration, and what it names: what the numbers amount to, whether Redis is fit, whether
// the upstream answers, whether what is on sale has stock. Each finding says what to do. It changes nothing but keys of
// its own, which it removes again.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"sluice/admin"
	"sluice/config"
)

// onlineWithin bounds all online checks together.
const onlineWithin = 10 * time.Second

// Results of findings.
const (
	info    = "info" // what a number amounts to
	good    = "ok"
	warning = "warning"
	failed  = "fail"
)

// check is a row of the table of checks.
type check struct {
	applies func(c *config.Config) bool // nil = always
	run     func(o *Report, c *config.Config)
	online  func(ctx context.Context, o *Report, c *config.Config) error // nil = the configuration alone is examined
}

// checks is the table: what "sluice check", "check --online", their JSON and the dashboard's pre-flight examine, in
// their order. A check reports findings, each with its way out.
var checks = []check{
	{run: (*Report).checkMode},
	{run: (*Report).listRoutes},
	{run: (*Report).sizeWindows},
	{applies: (*config.Config).SharesRedis, run: (*Report).checkFleetSecret},
	{run: (*Report).sizeRates},
	{run: (*Report).sizeInFlightOfKeys},
	{run: (*Report).sizeConcurrency},
	{applies: readsShopStock, run: (*Report).sizeReadings},
	{applies: (*config.Config).UsesLedger, run: (*Report).checkReserve},
	{applies: settles, run: (*Report).checkSettle},
	{run: (*Report).listSales},
	{applies: (*config.Config).KeepsPages, run: (*Report).checkCached},
	{applies: decides, run: (*Report).checkDecide},
	{run: (*Report).checkNames},
	{run: (*Report).checkConditions},
	{run: (*Report).checkSpelling},
	{run: (*Report).checkRooms},
	{applies: readsRedis, run: (*Report).checkTopology},
	{applies: readsRedis, run: (*Report).checkLayout},
	{run: (*Report).checkAccessLog},
	{run: (*Report).checkLists},
	{run: (*Report).sizeMemory},
	{run: (*Report).checkFiles},
	{run: (*Report).checkAddresses},
	{run: (*Report).checkRest},
	{run: (*Report).listTimeouts},
	{applies: keepsStockInMemory, run: (*Report).checkMemory},
	{online: tryTargets},
	{online: tryStock},
}

func readsRedis(c *config.Config) bool         { return c.Stock.Source == "redis" && c.ReadsStock() }
func readsShopStock(c *config.Config) bool     { return c.Stock.Source == "redis" && c.HasGate("check") }
func keepsStockInMemory(c *config.Config) bool { return c.Stock.Source == "memory" && c.ReadsStock() }

// Report collects findings. It is not safe for concurrent use.
type Report struct {
	File  string              // of the configuration, for the commands that findings propose
	SKUs  []string            // that must have stock, beside those on sale
	Each  func(admin.Finding) // is called with each finding as it comes; nil = not
	Brief bool                // Info is left out

	Findings []admin.Finding
}

// Info reports what a part of the configuration amounts to. about is what the finding is about, at most 9 letters.
func (o *Report) Info(about, format string, args ...any) { o.add(info, about, format, args) }

// OK reports that something is as it should be.
func (o *Report) OK(about, format string, args ...any) { o.add(good, about, format, args) }

// Warn reports what may be meant, with its consequence and the way out.
func (o *Report) Warn(about, format string, args ...any) { o.add(warning, about, format, args) }

// Fail reports what keeps orders from being served, with the way out.
func (o *Report) Fail(about, format string, args ...any) { o.add(failed, about, format, args) }

func (o *Report) add(result, about, format string, args []any) {
	if o.Brief && result == info {
		return
	}
	f := admin.Finding{Result: result, About: about, Says: fmt.Sprintf(format, args...)}
	o.Findings = append(o.Findings, f)
	if o.Each != nil {
		o.Each(f)
	}
}

// Failed reports whether a check has failed.
func (o *Report) Failed() bool {
	return slices.ContainsFunc(o.Findings, func(f admin.Finding) bool { return f.Result == failed })
}

// Examine runs the checks of the configuration alone.
func (o *Report) Examine(c *config.Config) {
	for _, row := range checks {
		if row.run != nil && (row.applies == nil || row.applies(c)) {
			row.run(o, c)
		}
	}
}

// Try runs the online checks, within 10 s: it asks the upstream and Redis. An error means that a check could not begin.
func (o *Report) Try(ctx context.Context, c *config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, onlineWithin)
	defer cancel()
	for _, row := range checks {
		if row.online != nil {
			if err := row.online(ctx, o, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// Line is a finding as a terminal shows it.
func Line(f admin.Finding) string {
	mark := map[string]string{info: "", good: "ok", warning: "warn", failed: "FAIL"}[f.Result]
	return fmt.Sprintf("%-4s %-9s %s\n", mark, f.About, f.Says)
}

// WriteJSON writes all findings as one object.
func (o *Report) WriteJSON(to io.Writer) error {
	e := json.NewEncoder(to)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		OK       bool            `json:"ok"`
		Findings []admin.Finding `json:"findings"`
	}{!o.Failed(), o.Findings})
}
