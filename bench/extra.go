package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"time"

	"github.com/valyala/fasthttp"
)

// What is measured beside the scenarios.

// extra measures in one round what the plan asks for. A crowd of a million and the binary's size come once.
func (f *field) extra(ctx context.Context, r results, round int) error {
	steps := map[string]func(context.Context, results, int) error{
		"latency": f.latency, "idle": f.waiting, "start": f.starting, "million": f.crowd,
		"silent": f.telling(""), "logged": f.telling("logged"), "traced": f.telling("traced"),
	}
	for _, name := range extraNames() {
		if !slices.Contains(f.extras, name) {
			continue
		}
		if err := steps[name](ctx, r, round); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// fronts are all who forward.
func fronts() []string { return []string{"nginx", "haproxy", "sluice"} }

// latency is that of forwarded requests at a constant rate.
func (f *field) latency(ctx context.Context, r results, round int) error {
	kinds := f.contenders(fronts(), false)
	for i := range kinds {
		k := kinds[(i+round)%len(kinds)]
		got, err := f.pace(ctx, k, f.connections[0])
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		r.add(cell{"latency", k.name, f.connections[0]}, got)
		fmt.Fprintf(os.Stderr, "  latency      %4d  %-8s p50 %6.3f ms  p99 %6.3f ms  p99.9 %6.3f ms  cpu %6.2f µs\n",
			f.connections[0], k.name, got[median], got[slow], got[slowest], got[gateCPU])
	}
	return nil
}

// pace asks one gate at the constant rate.
func (f *field) pace(ctx context.Context, k kind, connections int) (sample, error) {
	g, err := f.open(ctx, k, false)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	s := steady{address: g.front, request: []byte(plainRequest), perConn: connections, rate: f.rate, seconds: 1}
	if _, err := s.run(ctx); err != nil {
		return nil, err
	}
	before, err := processor(g.family())
	if err != nil {
		return nil, err
	}
	s.seconds = f.seconds
	took, err := s.run(ctx)
	if err != nil {
		return nil, err
	}
	after, err := processor(g.family())
	if err != nil {
		return nil, err
	}
	return sample{
		requests: float64(f.rate),
		median:   float64(took.ValueAtQuantile(50)) / 1e6,
		slow:     float64(took.ValueAtQuantile(99)) / 1e6,
		slowest:  float64(took.ValueAtQuantile(99.9)) / 1e6,
		gateCPU:  float64((after - before).Microseconds()) / float64(took.TotalCount()),
	}, nil
}

const plainRequest = "GET /item/1001 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: wrk\r\nAccept: " +
	"application/json\r\nCookie: uid=r1\r\n\r\n"

// waiting is the memory of connections that have asked once and wait.
func (f *field) waiting(ctx context.Context, r results, round int) error {
	kinds := f.contenders(append(fronts(), "bare"), false)
	for i := range kinds {
		k := kinds[(i+round)%len(kinds)]
		got, err := f.throng(ctx, k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		r.add(cell{"idle", k.name, f.idle}, got)
		fmt.Fprintf(os.Stderr, "  idle        %5d  %-8s %6.1f MiB, %5.2f KiB each\n", f.idle, k.name, got[memory], got[each])
	}
	return nil
}

// throng opens the connections, asks once on each, and looks what they cost when all are quiet.
func (f *field) throng(ctx context.Context, k kind) (sample, error) {
	g, err := f.open(ctx, k, false)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	before, err := share(g.family())
	if err != nil {
		return nil, err
	}
	var answer fasthttp.Response
	for i := range f.idle {
		// Addresses of loopback have so many ports each.
		from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i/5000))}, Timeout: 10 * time.Second}
		c, err := from.DialContext(ctx, "tcp", g.front)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if tcp, ok := c.(*net.TCPConn); ok { // else the next gate's turn finds all ports of these addresses in TIME_WAIT
			_ = tcp.SetLinger(0)
		}
		if _, err := c.Write([]byte(plainRequest)); err != nil {
			return nil, err
		}
		if err := answer.Read(bufio.NewReaderSize(c, 512)); err != nil {
			return nil, err
		}
	}
	sleep(ctx, 2*time.Second)
	after, err := share(g.family())
	if err != nil {
		return nil, err
	}
	return sample{memory: float64(after) / (1 << 20), each: float64(after-before) / 1024 / float64(f.idle)}, nil
}

// starting is how long each takes until it answers, and how large our binary is.
func (f *field) starting(ctx context.Context, r results, _ int) error {
	for _, k := range f.contenders([]string{"nginx", "haproxy", "sluice"}, false) {
		g, err := f.open(ctx, k, false)
		if err != nil {
			return err
		}
		g.stop()
		got := sample{startup: float64(g.took.Microseconds()) / 1e3}
		if k.name == "sluice" {
			file, err := os.Stat(f.binary)
			if err != nil {
				return err
			}
			got[size] = float64(file.Size()) / 1e6
		}
		r.add(cell{"start", k.name, 0}, got)
		fmt.Fprintf(os.Stderr, "  start              %-8s %6.1f ms\n", k.name, got[startup])
	}
	return nil
}

// crowd sells 10,000 units to a million requests, and counts what Redis hears of it.
func (f *field) crowd(ctx context.Context, r results, round int) error {
	if round > 0 {
		return nil
	}
	sale := scenarioOf("sale")
	for _, k := range f.contenders([]string{"sluice"}, true) {
		got, err := f.sellOut(ctx, k, sale)
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
		r.add(cell{"million", k.name, 512}, got)
		fmt.Fprintf(os.Stderr, "  million      %4d  %-8s %8.0f calls of Redis, %.2f µs of the gate\n", 512, k.name,
			got[calls], got[gateCPU])
	}
	return nil
}

// sellOut drives the crowd until it has asked so often.
func (f *field) sellOut(ctx context.Context, k kind, sale scenario) (sample, error) {
	g, err := f.stocked(ctx, k, sale)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	before, err := f.readCounters(ctx, g, sale)
	if err != nil {
		return nil, err
	}
	asked, admitted := 0, 0
	for asked < f.million {
		b, err := f.drive(ctx, g.front, sale, 512, max(f.seconds, f.million/200_000), f.run())
		if err != nil {
			return nil, err
		}
		if err := b.is(sale); err != nil {
			return nil, err
		}
		asked += b.requests
		admitted += b.requests - b.rejected
	}
	if admitted > sale.units {
		return nil, fmt.Errorf("%d of %d units were sold", admitted, sale.units)
	}
	after, err := f.readCounters(ctx, g, sale)
	if err != nil {
		return nil, err
	}
	return sample{
		calls:    float64(after.calls - before.calls),
		gateCPU:  float64((after.gate - before.gate).Microseconds()) / float64(asked),
		redisCPU: float64((after.redis - before.redis).Microseconds()) / float64(asked),
		memory:   float64(after.memory) / (1 << 20),
	}, nil
}

// telling is what a rejection costs Sluice when it also tells of it, as the default configuration does: "logged" to a
// file and in memory, "traced" with a collector that takes everything, or "" for neither.
func (f *field) telling(how string) func(context.Context, results, int) error {
	return func(ctx context.Context, r results, _ int) error {
		name := how
		if name == "" {
			name = "silent"
		}
		for _, k := range f.contenders([]string{"sluice"}, false) {
			k.tells = how
			got, err := f.play(ctx, k, scenarioOf("limited"), f.connections[0])
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			r.add(cell{name, k.name, f.connections[0]}, got)
			fmt.Fprintf(os.Stderr, "  %-12s %4d  %-8s %s\n", name, f.connections[0], k.name, got)
		}
		return nil
	}
}
