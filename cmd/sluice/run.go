package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"sluice/admin"
	"sluice/config"
)

type runCommand struct {
	Config   string `help:"The configuration file." default:"config.toml" placeholder:"FILE"`
	From     string `help:"Instead of a file: listen here …" placeholder:":8080"`
	To       string `help:"… and pass all, within the default limits, to this shop." placeholder:"http://127.0.0.1:9000"`
	TakeOver bool   `help:"Share the addresses of a running gate and take new connections; then stop it by SIGTERM."`
	Mode     string `help:"Overrides mode: enforce or observe." enum:",enforce,observe" default:""`
}

func (r *runCommand) Run() error {
	c, err := r.load()
	if err != nil {
		return err
	}
	log := newLog(c.Log, os.Stderr)
	slog.SetDefault(log)
	return r.serve(c, log)
}

// letGrow turns garbage collection off until collect is called. Of what is made at start hardly anything is garbage, but
// so much is made that it was looked for three times, which took a third of the time until the gate was ready. What is
// made is bounded by the configuration, and GOMEMLIMIT holds all the same.
func letGrow() (collect func()) {
	before := debug.SetGCPercent(-1)
	return func() { debug.SetGCPercent(before) }
}

func (r *runCommand) load() (*config.Config, error) {
	if (r.From == "") != (r.To == "") {
		return nil, errors.New("--from and --to go together: where shoppers come in, and where the shop is")
	}
	if r.From == "" {
		return config.Load(r.Config, os.LookupEnv, compiles, r.overrides)
	}
	text := fmt.Sprintf("[server]\nlisten = [%q]\n[upstream]\ntargets = [%q]\n"+
		"[[route]]\nname = \"everything\"\nmatch = \"/\"\ngate = \"limit\"\n[stock]\nsource = \"off\"\n", r.From, r.To)
	return config.Parse("--from/--to", []byte(text), noEnvironment, r.overrides)
}

// overrides puts what was said on the command line above what the file says.
func (r *runCommand) overrides(c *config.Config) []error {
	if r.Mode != "" {
		c.Mode = r.Mode
	}
	return nil
}

// noEnvironment is for configurations that no file holds: a REDIS_ADDR that is meant for others must not be able to
// make them wrong.
func noEnvironment(string) (string, bool) { return "", false }

// files are what a reload reads again; none = nothing.
func (r *runCommand) files(c *config.Config) []string {
	if r.From != "" {
		return nil
	}
	return c.Files()
}

// rereads has g's helm read the files of from again when it is asked to; none = it cannot.
func (r *runCommand) rereads(h *helm, from *sources) {
	h.mode = r.Mode != ""
	if from.some() {
		h.read = func() (*config.Config, error) {
			if err := from.readable(); err != nil {
				return nil, err
			}
			return r.load()
		}
		h.told = func(running *config.Config, ok bool) { from.set(r.files(running), !ok) }
	}
}

// serve runs the gate until it is told to stop, and then until everything that was accepted has its answer.
func (r *runCommand) serve(c *config.Config, log *slog.Logger) error {
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	hangup := hangups()
	collect := letGrow()
	g, err := newGate(c, trial{}, log)
	if err != nil {
		return err
	}
	defer g.close()
	var from sources
	from.set(r.files(c), false)
	r.rereads(g.helm, &from)
	g.helm.drain = make(chan struct{}, 1)
	listeners, err := g.open(r.TakeOver, log)
	if err != nil {
		return err
	}
	side, err := g.listenAside(r.TakeOver, log)
	if err != nil {
		return err
	}
	defer side.close()
	g.startAccessLog()
	defer g.reopening()()
	failed := g.listen(listeners, log)
	collect()
	log.Info("ready", "version", version, "targets", strings.Join(c.Upstream.Targets, " "),
		"mode", c.Mode, "stock", c.Stock.Source, "config", c.Version())
	if c.Stock.Source == "memory" {
		log.Warn(`stock.source is "memory": this instance alone knows the stock, and forgets it when it ends`)
	}
	again, retry := changes(&from, c.Reload.Watch, hangup, log, stop.Done())
	for running := true; running; {
		select {
		case <-again:
			g.helm.again(false)
		case <-retry:
			g.helm.again(true)
		case err = <-failed:
			log.Error("listening failed; draining", "err", err)
			running = false
		case <-g.helm.drain:
			g.announce(log)
			running = false
		case <-stop.Done():
			cancel() // a second signal ends the process at once
			g.announce(log)
			running = false
		}
	}
	g.draining.Store(true)
	if cut := g.drain(g.helm.config().Server.ShutdownTimeout); cut > 0 {
		log.Warn("connections cut off: they had no answer within shutdown_timeout", "connections", cut)
	}
	log.Info("stopped")
	return err
}

// announce tells everybody that this instance is going to stop, and gives them the time to hear it.
func (g *gate) announce(log *slog.Logger) {
	s := g.helm.config().Server
	log.Info("draining", "delay", s.ShutdownDelay.String(), "timeout", s.ShutdownTimeout.String())
	g.draining.Store(true)
	g.server.AnnounceShutdown()
	time.Sleep(s.ShutdownDelay)
}

// open opens every address, or takes what the service manager has opened.
func (g *gate) open(takeOver bool, log *slog.Logger) ([]net.Listener, error) {
	listeners, err := inherited()
	if err != nil {
		return nil, err
	}
	if len(listeners) > 0 {
		log.Info("listening on sockets of the service manager; server.listen is not used", "sockets", len(listeners))
		return listeners, nil
	}
	if listeners, err = openAll(g.config.Server.Listen, takeOver); err != nil {
		return nil, g.config.Errorf("server.listen", "%v", err)
	}
	return listeners, nil
}

// listen serves shoppers; failed tells when one of the listeners ends by itself.
func (g *gate) listen(listeners []net.Listener, log *slog.Logger) (failed chan error) {
	failed = make(chan error, len(listeners))
	for _, ln := range listeners {
		go func() {
			if err := g.server.Serve(breakableFront(ln)); err != nil {
				failed <- err
			}
		}()
		log.Info("listening for shoppers", "address", ln.Addr().String())
	}
	return failed
}

// aside are the servers for operators and their machines.
type aside []*http.Server

func (a aside) close() {
	for _, s := range a {
		_ = s.Close()
	}
}

func (g *gate) listenAside(takeOver bool, log *slog.Logger) (aside, error) {
	var servers aside
	open := func(key, address string, h http.Handler) error {
		if address == "" {
			return nil
		}
		ln, err := listenOn(address, takeOver)
		if err != nil {
			servers.close()
			return g.config.Errorf(key, "%v", err)
		}
		s := &http.Server{Addr: ln.Addr().String(), Handler: h, ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
			ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
		servers = append(servers, s)
		go func() { _ = s.Serve(bounded(ln)) }() // ends with close
		log.Info("listening for operators", "key", key, "address", ln.Addr().String())
		return nil
	}
	g.probes = g.checks()
	if err := open("ops.listen", g.config.Ops.Listen, admin.Ops(g.probes, g.metrics)); err != nil {
		return nil, err
	}
	if g.config.Admin.Listen != "" {
		g.watch, g.page = admin.NewWatch(g.proxy.Counters().Traffic, g.shown()), admin.NewDashboard()
	}
	g.control.use(g.api(g.config, log))
	return servers, open("admin.listen", g.config.Admin.Listen, &g.control)
}

// awayTooLong is how long Redis may be away before an instance that refuses without it is not ready.
const awayTooLong = 10 * time.Second

func (g *gate) checks() []admin.Check {
	checks := []admin.Check{
		{Name: "serving", Probe: func() (string, bool) {
			if g.draining.Load() {
				return "draining", false
			}
			return "not draining", true
		}},
		{Name: "upstream", Probe: g.upstreamCheck},
	}
	if g.redis != nil {
		checks = append(checks, admin.Check{Name: "redis", Probe: g.redisCheck})
	}
	if g.sharing.member != nil {
		checks = append(checks, admin.Check{Name: "fleet", Probe: g.sharing.counted})
	}
	if len(g.board.All()) > 0 {
		checks = append(checks, admin.Check{Name: "sales", Probe: g.clockCheck})
	}
	if g.orders != nil {
		checks = append(checks, admin.Check{Name: "ledger", Probe: g.orders.opened})
	}
	return checks
}

func (g *gate) upstreamCheck() (string, bool) {
	well := 0
	states := g.shop.Targets()
	for _, t := range states {
		if t.Healthy && !t.Ejected {
			well++
		}
	}
	return fmt.Sprintf("%d of %d targets up", well, len(states)), well > 0
}

func (g *gate) redisCheck() (string, bool) {
	away := g.stock.Away(g.now())
	if away == 0 {
		return "reached", true
	}
	onError := g.config.Stock.OnError
	return fmt.Sprintf("away for %s; stock.on_error = %q decides", away.Round(100*time.Millisecond), onError),
		onError == "allow" || away < awayTooLong
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func newLog(c config.Log, out *os.File) *slog.Logger {
	o := &slog.HandlerOptions{Level: levels[c.Level]}
	format := c.Format
	if format == "auto" {
		format = "json"
		if info, err := out.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			format = "text"
		}
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(out, o))
	}
	return slog.New(slog.NewJSONHandler(out, o))
}
