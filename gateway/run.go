package gateway

import (
	"context"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"sluice/config"
	"sluice/internal/listener"
)

// pauseCollection turns garbage collection off until collect is called. Of what is made at start hardly anything is
// garbage, but so much is made that it was looked for three times, which took a third of the time until the gate was
// ready. What is made is bounded by the configuration, and GOMEMLIMIT holds all the same.
func pauseCollection() (collect func()) {
	before := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(before) }
}

// RunOptions say what a gateway that runs has beside its configuration.
type RunOptions struct {
	Options
	Load     func() (*config.Config, error) // reads the files of the configuration again; nil = there are none
	TakeOver bool                           // share the addresses of a running gateway
	ModeSet  bool                           // the command line decides mode
}

// Run serves until a signal or an operator stops it, and then until every accepted request has its response.
func Run(c *config.Config, o RunOptions, log *slog.Logger) error {
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	hangup := hangups()
	collect := pauseCollection()
	var from configFiles
	if o.Load != nil {
		from.set(c.Files(), false)
	}
	from.changed() // before pages and lists are read: what changes from now on is noticed
	g, err := New(c, o.Options, log)
	if err != nil {
		return err
	}
	defer g.Close()
	g.controller.mode, g.controller.drain = o.ModeSet, make(chan struct{}, 1)
	g.controller.load, g.controller.files = o.Load, &from
	side, err := g.ListenAdmin(o.TakeOver, log)
	if err != nil {
		return err
	}
	defer side.Close()
	asked, err := g.openDecideListeners(o.TakeOver)
	if err != nil {
		return err
	}
	// Last: a shared address gets connections from the running gateway at once, and a start that fails resets them.
	listeners, err := g.open(o.TakeOver, log)
	if err != nil {
		return err
	}
	if err := g.fleet.join(); err != nil {
		return err
	}
	g.startAccessLog()
	defer g.reopening()()
	failed := g.Listen(listeners, log)
	g.listenDeciders(asked, failed, log)
	collect()
	log.Info("started", "version", o.Version, "targets", strings.Join(c.Upstream.Targets, " "),
		"mode", c.Mode, "stock", c.Stock.Source, "config", c.Version())
	for _, path := range c.WritableByAll() {
		log.Warn("every user of this machine may write a file of the configuration, and change what this gateway does",
			"file", path, "hint", "chmod o-w "+path)
	}
	if c.Stock.Source == "memory" {
		log.Warn(`stock.source is "memory": this instance alone knows the stock, and forgets it when it ends`)
	}
	leave := from.follow(func() bool { return g.controller.config().Watch }, hangup, log, g.controller.reloadUnasked)
	select {
	case err = <-failed:
		log.Error("listening failed; draining", "err", err)
	case <-g.controller.drain:
	case <-stop.Done():
		cancel() // a second signal ends the process at once
	}
	leave()
	if err == nil {
		g.announce(log)
	}
	g.draining.Store(true)
	timeout := g.controller.config().Server.ShutdownTimeout
	log.Info("waiting for the requests in flight", "at_upstream", g.atUpstream(), "connections",
		g.Server.Stats().Connections, "at_most", timeout.String())
	if cut := g.Drain(timeout); cut > 0 {
		log.Warn("connections cut off: they had no answer within shutdown_timeout", "connections", cut)
	}
	log.Info("stopped")
	return err
}

// announce tells everybody that this instance is going to stop, and gives them the time to hear it.
func (g *Gateway) announce(log *slog.Logger) {
	s := g.controller.config().Server
	log.Info("draining", "delay", s.ShutdownDelay.String(), "timeout", s.ShutdownTimeout.String(),
		"hint", "a second signal ends the process at once")
	g.draining.Store(true)
	g.rooms.StopWaiting()
	g.Server.AnnounceShutdown()
	time.Sleep(s.ShutdownDelay)
}

// atUpstream is how many requests the shop has and has not answered yet.
func (g *Gateway) atUpstream() (n int) {
	for _, t := range g.shop.Targets() {
		n += t.InFlight
	}
	return n
}

// open opens every address, or takes what the service manager has opened.
func (g *Gateway) open(takeOver bool, log *slog.Logger) ([]net.Listener, error) {
	listeners, err := listener.Inherited()
	if err != nil {
		return nil, err
	}
	if len(listeners) > 0 {
		log.Info("listening on sockets of the service manager; server.listen is not used", "sockets", len(listeners))
		return listeners, nil
	}
	if listeners, err = listener.OpenAll(g.Config.Server.Listen, takeOver); err != nil {
		return nil, g.Config.Errorf("server.listen", "%v", err)
	}
	if err := listener.PermitSockets(listeners, g.Config); err != nil {
		for _, ln := range listeners {
			ln.Close()
		}
		return nil, err
	}
	return listeners, nil
}

// Listen serves shoppers; failed tells when one of the listeners ends by itself.
func (g *Gateway) Listen(listeners []net.Listener, log *slog.Logger) (failed chan error) {
	failed = make(chan error, len(listeners)+len(g.deciders))
	for _, ln := range listeners {
		go func() {
			if err := g.Server.Serve(failListener(ln)); err != nil {
				failed <- err
			}
		}()
		log.Info("listening for shoppers", "address", ln.Addr().String())
	}
	return failed
}
