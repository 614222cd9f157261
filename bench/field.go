package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"sluice/internal/listener"
	"sluice/internal/load"
)

// field is where the gates compete: the shop, the store and the load, the same for all.
type field struct {
	plan
	dir         string // everything that is written
	self        string // this program
	script      string // of wrk
	files       int    // how many a process may open
	modules     []string
	shop        *load.Process
	shopAddress string
	redis       *store
	runs        int // of wrk and of crowds, so far
}

// newField makes the folder of a run. close gives back what it and prepare took.
func newField(p plan) (*field, error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	f := &field{plan: p, dir: dir, files: min(cmp.Or(listener.OpenFileLimit(), 1<<20), 1<<20),
		modules: luaModules(), script: filepath.Join(dir, "load.lua")}
	if f.self, err = os.Executable(); err == nil {
		err = os.WriteFile(f.script, loadScript, 0o600)
	}
	if err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// prepare starts what stands behind the gates.
func (f *field) prepare(ctx context.Context) (err error) {
	if f.binary == "" {
		if f.binary, err = build(ctx, f.dir); err != nil {
			return err
		}
	}
	if f.redis, err = openStore(ctx, f.dir); err != nil {
		return err
	}
	free, err := load.FreeAddresses(1)
	if err != nil {
		return err
	}
	f.shopAddress = free[0]
	s := settings{Shop: f.shopAddress, Cores: runtime.NumCPU(), Files: f.files, Dir: f.dir}
	if err := (kind{files: []string{"peers/shop.conf"}}).render(f.dir, s); err != nil {
		return err
	}
	f.shop, err = load.StartProcess(ctx, f.dir, "shop", "nginx", "-p", f.dir, "-e", filepath.Join(f.dir, "shop.log"), "-c",
		filepath.Join(f.dir, "shop.conf"))
	if err != nil {
		return err
	}
	return f.shop.Listens(ctx, f.shopAddress)
}

// close ends what prepare started and removes the folder.
func (f *field) close() {
	if f.shop != nil {
		f.shop.Stop()
	}
	if f.redis != nil {
		f.redis.stop()
	}
	_ = os.RemoveAll(f.dir)
}

// group is one table of the page.
type group struct {
	name, title string
	along       string // what a trial's number counts
	per         string // what costs are given for: request, second or sale
	ratio       string // what CPU is compared with
	trials      []trial
}

// trial is one line of a table.
type trial struct {
	row  string // who is asked for what
	at   int
	gate string
	run  func(context.Context) (sample, error)
}

// groups are those that the plan asks for.
func (f *field) groups() (all []group) {
	if f.scale {
		for _, a := range axes(f.quick) {
			if slices.Contains(f.only, a.name) {
				all = append(all, f.axisGroup(a))
			}
		}
		return all
	}
	for _, s := range scenarios() {
		if slices.Contains(f.only, s.name) {
			all = append(all, f.scenarioGroup(s))
		}
	}
	return all
}

// cell is a place in the results.
type cell struct {
	group, row string
	at         int
}

// results are the rounds of each cell.
type results map[cell][]sample

// measure runs all trials, round by round, so that what changes on the machine changes for all; another one begins in
// every round. Its error names the trials that could not be measured.
func (f *field) measure(ctx context.Context, groups []group) (results, error) {
	r, failed := results{}, []error(nil)
	for round := range f.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, f.rounds)
		for _, g := range groups {
			for i := range g.trials {
				t := g.trials[(i+round)%len(g.trials)]
				got, err := t.run(ctx)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if err != nil { // the others are worth to be measured all the same
					failed = append(failed, fmt.Errorf("%s, %s at %d: %w", g.name, t.row, t.at, err))
					fmt.Fprintln(os.Stderr, "bench:", failed[len(failed)-1])
					continue
				}
				c := cell{g.name, t.row, t.at}
				r[c] = append(r[c], got)
				fmt.Fprintf(os.Stderr, "  %-12s %-26s %7d  %s\n", g.name, t.row, t.at, got)
			}
		}
	}
	return r, errors.Join(failed...)
}

// contenders are those of some gates that are asked for, installed and able.
func (f *field) contenders(some []string, lua bool) []kind {
	var able []kind
	for _, k := range gateKinds() {
		_, err := exec.LookPath(k.needs)
		missing := k.needs != "" && err != nil || k.name == "nginx" && lua && len(f.modules) == 0
		if slices.Contains(some, k.name) && slices.Contains(f.gates, k.name) && !missing {
			able = append(able, k)
		}
	}
	return able
}

// asked is what a load has done.
type asked struct {
	requests int
	took     time.Duration
	p50, p99 float64 // ms
	waiting  int     // connections, until close
	close    func()
	per      float64 // what costs are divided by; 0 = the requests
}

// metered reads all counters before and after a load.
func (f *field) metered(ctx context.Context, gates fleet, what func() (asked, error)) (sample, error) {
	before, err := f.read(ctx, gates)
	if err != nil {
		return nil, err
	}
	a, err := what()
	if a.close != nil {
		defer a.close()
	}
	if err != nil {
		return nil, err
	}
	after, err := f.read(ctx, gates)
	if a.per == 0 {
		a.per = float64(a.requests)
	}
	got := sample{
		requests: float64(a.requests) / a.took.Seconds(), median: a.p50, slow: a.p99,
		gateCPU: inMicros(after.gate-before.gate) / a.per, redisCPU: inMicros(after.redis-before.redis) / a.per,
		calls: float64(after.calls-before.calls) / a.per, memory: float64(after.memory) / (1 << 20),
		startup: gates[0].took.Seconds() * 1e3,
	}
	if a.waiting > 0 {
		got[each] = float64(after.memory-before.memory) / 1024 / float64(a.waiting)
	}
	return got, err
}

func inMicros(d time.Duration) float64 { return d.Seconds() * 1e6 }

// reading is what the counters say at one instant.
type reading struct {
	gate, redis time.Duration // of a processor
	calls       int64
	memory      int64 // bytes
}

func (f *field) read(ctx context.Context, gates fleet) (l reading, err error) {
	if l.gate, err = load.CPU(gates.PIDs()); err != nil {
		return l, err
	}
	if l.redis, err = load.CPU(f.redis.PIDs()); err != nil {
		return l, err
	}
	if l.memory, err = load.PSS(gates.PIDs()); err != nil {
		return l, err
	}
	l.calls, err = f.redis.calls(ctx)
	return l, err
}

// run is a word that no other has.
func (f *field) run() string {
	f.runs++
	return fmt.Sprintf("r%d", f.runs)
}

// connect has n connections spread over fronts, from as many addresses of loopback as their ports need.
func (f *field) connect(n int, fronts ...string) *load.Connections {
	return load.NewConnections(n, func(ctx context.Context, i int) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/5000))}, Timeout: 10 * time.Second}
		c, err := d.DialContext(ctx, "tcp", fronts[i%len(fronts)])
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // else the next gate's turn finds the ports in TIME_WAIT
		}
		return c, err
	})
}
