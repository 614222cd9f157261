package gateway

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"sluice/accesslog"
	"sluice/admin"
	"sluice/config"
	"sluice/proxy/metrics"
)

// rejectedEvery is how many rejections of a reason one line stands for, beyond access_log.rejected_per_second.
const rejectedEvery = 1000

// accessSettings are what the configuration says of the access log.
func accessSettings(c *config.Config) accesslog.Settings {
	a := c.AccessLog
	s := accesslog.Settings{
		Output: a.Output, RejectedFirst: a.RejectedPerSecond, RejectedEvery: rejectedEvery,
		MaskIP: a.MaskIP, Remember: int64(a.BufferSize),
	}
	if c.UsesLedger() {
		s.Hold = c.Stock.Reserve.ReservationTTL
	}
	return s
}

// openAccessLog opens the log of requests. It is written once the gate serves.
func openAccessLog(c *config.Config, now func() int64, log *slog.Logger) (*accesslog.Log, error) {
	l, err := accesslog.New(accesslog.Options{Settings: accessSettings(c), Stdout: os.Stdout, Now: now,
		Secret: []byte(c.Stock.Reserve.Secret), Log: log})
	if err != nil {
		return nil, c.Errorf("access_log.output", "%v", err)
	}
	return l, nil
}

// accessLogger is the access log of requests; nil when c wants neither a log nor a memory of them.
func (g *Gateway) accessLogger(c *config.Config) metrics.AccessLogger {
	if c.AccessLog.Output == "off" && c.AccessLog.BufferSize == 0 {
		return nil
	}
	return g.access
}

// startAccessLog begins to write.
func (g *Gateway) startAccessLog() {
	g.access.Start(func() accesslog.Totals {
		return accesslog.Totals{Totals: g.Server.Totals(), InFlight: g.limits.InFlight()}
	})
}

// why answers the control API out of what the access log remembers.
func (g *Gateway) why(q admin.Question, most int) admin.Decisions {
	found := g.access.Find(accesslog.Question(q), most)
	return admin.Decisions{Decisions: found.Lines, Since: found.Since}
}

// reopening opens the access log's file anew at each signal that asks for it, until it is ended. A standard output that
// has no reader any more is not a reason to die: what is written there is lost, and counted.
func (g *Gateway) reopening() (end func()) {
	signal.Ignore(syscall.SIGPIPE)
	asked, stopped := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, rotated()...)
	go func() {
		defer close(stopped)
		for range asked {
			g.access.Reopen()
		}
	}()
	return func() {
		signal.Stop(asked) // no signal comes after that
		close(asked)
		<-stopped
	}
}
