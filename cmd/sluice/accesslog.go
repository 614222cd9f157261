package main

import (
	"fmt"
	"log/slog"
	"os"

	"sluice/accesslog"
	"sluice/config"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
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

// bounds say how large each limit is, for the access log and explain.
func bounds(c *config.Config) map[reject.Reason]string {
	l := c.Limits
	inside := fmt.Sprintf("limits.concurrency: max_in_flight %d, max_queue %d",
		l.Concurrency.MaxInFlight, l.Concurrency.MaxQueue)
	return map[reject.Reason]string{
		reject.ConnOpen: fmt.Sprintf("limits.connection: max_open %d", l.Connection.MaxOpen),
		reject.IPConns:  fmt.Sprintf("limits.connection: max_open_per_ip %d", l.Connection.MaxOpenPerIP),
		reject.ConnRate: fmt.Sprintf("limits.connection: %.3g/s, burst %d",
			float64(l.Connection.Rate), l.Connection.Burst),
		reject.DeniedIP: fmt.Sprintf("limits.deny: %d networks", len(l.Denied)),
		reject.TooLarge: fmt.Sprintf("server.max_body_size: %s", c.Server.MaxBodySize),
		reject.TooSlow:  fmt.Sprintf("server.read_timeout: %s", c.Server.ReadTimeout),
		reject.Window: fmt.Sprintf("limits.window: max %d, max_per_sku %d in %s, carry %d",
			l.Window.Max, l.Window.MaxPerSKU, l.Window.Size, l.Window.Carry),
		reject.Concurrency:  inside,
		reject.QueueTimeout: fmt.Sprintf("%s, queue_timeout %s", inside, l.Concurrency.QueueTimeout),
	}
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
	return fmt.Sprintf("of requests, to %s: all that are forwarded; of each reason to refuse the first %d in a second, "+
		"then 1 in %d; the last %s remembered for sluice why",
		a.Output, a.RefusedFirst, a.RefusedEvery, a.Remember)
}
