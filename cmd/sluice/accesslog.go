package main

import (
	"fmt"
	"log/slog"
	"os"

	"sluice/accesslog"
	"sluice/config"
	"sluice/proxy/metrics"
)

// accessSettings are what the configuration says of the access log.
func accessSettings(c *config.Config) accesslog.Settings {
	a := c.AccessLog
	return accesslog.Settings{
		Output: a.Output, RefusedFirst: a.RefusedFirst, RefusedEvery: a.RefusedEvery,
		MaskIP: a.MaskIP, Remember: int64(a.Remember),
	}
}

// openAccessLog opens the log of requests. It is written once the gate serves.
func openAccessLog(c *config.Config, now func() int64, log *slog.Logger) (*accesslog.Log, error) {
	o := accesslog.Options{Settings: accessSettings(c), Stdout: os.Stdout, Now: now,
		Secret: []byte(c.Stock.Reserve.Secret), Log: log}
	if reserves(c) {
		o.Hold = c.Stock.Reserve.Hold
	}
	l, err := accesslog.New(o)
	if err != nil {
		return nil, c.Errorf("access_log.output", "%v", err)
	}
	return l, nil
}

// accessLogger is the access log of requests; nil when c wants neither a log nor a memory of them.
func (g *gate) accessLogger(c *config.Config) metrics.AccessLogger {
	if c.AccessLog.Output == "off" && c.AccessLog.Remember == 0 {
		return nil
	}
	return g.access
}

// startAccessLog begins to write.
func (g *gate) startAccessLog() {
	g.access.Start(func() accesslog.Totals {
		return accesslog.Totals{Totals: g.server.Totals(), InFlight: g.inFlight.all.InFlight()}
	})
}

// routeBound says how large the limit of a single route is; "" = it has none of its own.
func routeBound(c *config.Config, r *config.Route) string {
	if r.MaxInFlight == 0 {
		return ""
	}
	l := c.Limits.Concurrency
	return fmt.Sprintf("route %s: max_in_flight %d of %d, max_queue %d, queue_timeout %s",
		r.Name, r.MaxInFlight, l.MaxInFlight, l.MaxQueue, l.QueueTimeout)
}

// sayAccessLog says what will be written down.
func sayAccessLog(a *config.AccessLog) string {
	if a.Output == "off" {
		return fmt.Sprintf("of requests: none; the last %s of lines are remembered for sluice why", a.Remember)
	}
	return fmt.Sprintf("of requests, to %s: all that are forwarded; of each reason to reject the first %d in a second, "+
		"then 1 in %d; the last %s remembered for sluice why",
		a.Output, a.RefusedFirst, a.RefusedEvery, a.Remember)
}
