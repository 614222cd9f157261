package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// cost is what one round of a load cost: counts, and processor time in µs.
type cost struct {
	Seconds   float64 `json:"seconds"`
	Requests  float64 `json:"requests"`
	Forwarded float64 `json:"forwarded"`
	Orders    float64 `json:"orders"` // of the forwarded
	Rejected  float64 `json:"refused"`
	Gates     float64 `json:"gates_us"`
	Redis     float64 `json:"redis_us"`
	Calls     float64 `json:"redis_calls"`
	Yardstick float64 `json:"yardstick_us,omitempty"` // what a turn of it cost at that time; 0 = not looked at
}

// Time that is not measured, and the least that is.
const (
	settleIn   = 200 * time.Millisecond // of the load before it is measured
	perSKU     = time.Millisecond       // of each SKU that is sold out beyond that, and instance: who has won it is read
	mostSettle = 20 * time.Second
	settleOut  = 150 * time.Millisecond // for what is settled after the answer
	idleSpan   = 2 * time.Second        // of an idle fleet: some of what it does it does once a second
	mostSpan   = 20 * time.Second       // of a crowd that asks so often
)

// price measures a load once, on fresh gates and a fresh stock.
func (f *field) price(ctx context.Context, l load, span time.Duration) (cost, error) {
	gates, err := f.assemble(ctx, l)
	if err != nil {
		return cost{}, err
	}
	defer gates.stop()
	if l.Underway == 0 {
		sleep(ctx, settleIn)
		return f.meter(ctx, gates, func() (answers, error) { sleep(ctx, idleSpan); return answers{}, nil })
	}
	c, err := gather(ctx, l, f.run(), gates.fronts())
	if err != nil {
		return cost{}, err
	}
	defer c.close()
	if err := c.arrive(ctx); err != nil {
		return cost{}, err
	}
	return f.meter(ctx, gates, func() (answers, error) {
		most := int64(math.MaxInt64)
		if l.Requests > 0 {
			span, most = mostSpan, int64(l.Requests)
		}
		profiled := gates[0].profile(ctx, f.profiles, span)
		h, err := c.play(ctx, span, most)
		<-profiled
		if err == nil && !h.right() {
			err = fmt.Errorf("%d of %d answers are not those of the load, %q for example", h.wrong, h.asked, h.odd)
		}
		sleep(ctx, settleOut)
		return h, err
	})
}

// arrive is the load before it is measured: the gate has met every SKU, and gives the answers that it should. A sale
// has no before.
func (c *crowd) arrive(ctx context.Context) error {
	if c.Units > 0 {
		return nil
	}
	for range patience {
		if round := c.round(); round > 0 {
			c.tour = true
			_, err := c.play(ctx, mostSpan, round)
			if c.tour = false; err != nil {
				return err
			}
		}
		h, err := c.play(ctx, c.settling(), math.MaxInt64)
		if err != nil || h.right() {
			return err
		}
		sleep(ctx, settleOut) // connections to Redis are still being opened, say
	}
	return nil
}

// settling is how long a load lasts before it is measured.
func (c *crowd) settling() time.Duration {
	if c.Gate != "sluice" { // has nothing to find out of a SKU
		return settleIn
	}
	return settleIn + min(time.Duration(c.Gone*c.Instances)*perSKU, mostSettle)
}

// round is how many requests meet every SKU that is sold out or checked; 0 = there is one of each at most, or a gate
// that has nothing to find out. A gate's first look at a SKU is another thing than what the others cost.
func (c *crowd) round() int64 {
	n := 0
	if c.Gate != "sluice" {
		return 0
	}
	if c.GonePart > 0 && c.Gone > 1 {
		n = c.Gone * 100 / c.GonePart
	}
	if c.CheckPart > 0 && c.Open > 1 {
		n = max(n, c.Open*100/c.CheckPart)
	}
	return int64(n * c.Instances)
}

// patience is how often a load may begin with wrong answers.
const patience = 10

// right tells whether hardly any answer was a wrong one.
func (h answers) right() bool { return h.asked > 0 && h.wrong <= h.asked/100+10 }

// profile writes where the gate spends its time meanwhile into a folder; "" = none. What it costs is in what is
// measured.
func (g *gate) profile(ctx context.Context, dir string, span time.Duration) <-chan struct{} {
	done := make(chan struct{})
	if dir == "" || g.admin == "" {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", g.admin, max(1, int(span.Seconds())))
		if err := fetch(ctx, url, filepath.Join(dir, fmt.Sprintf("%d.pprof", time.Now().UnixMilli()))); err != nil {
			fmt.Fprintln(os.Stderr, "bench: profile:", err)
		}
	}()
	return done
}

// fetch keeps what is at url in a file.
func fetch(ctx context.Context, url, file string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// meter reads all counters before and after.
func (f *field) meter(ctx context.Context, gates fleet, what func() (answers, error)) (c cost, err error) {
	before, err := f.counters(ctx, gates)
	if err != nil {
		return c, err
	}
	begin := time.Now()
	h, err := what()
	if err != nil {
		return c, err
	}
	c.Seconds = time.Since(begin).Seconds()
	after, err := f.counters(ctx, gates)
	c.Requests, c.Forwarded, c.Orders, c.Rejected = float64(h.asked), float64(h.forwarded), float64(h.orders),
		float64(h.rejected)
	c.Gates, c.Redis = inMicros(after.gate-before.gate), inMicros(after.redis-before.redis)
	c.Calls = float64(after.calls - before.calls)
	return c, err
}

func inMicros(d time.Duration) float64 { return d.Seconds() * 1e6 }

func (f *field) counters(ctx context.Context, gates fleet) (r reading, err error) {
	if r.gate, err = processor(gates.family()); err != nil {
		return r, err
	}
	if r.redis, err = processor(f.redis.family()); err != nil {
		return r, err
	}
	r.calls, err = f.redis.heard(ctx, askedByGates)
	return r, err
}

// askedByGates tells the commands that a gate sends; ledger scripts call none of them.
func askedByGates(command string) bool {
	switch command {
	case "evalsha", "eval", "fcall", "evalsha_ro", "eval_ro", "fcall_ro", "get", "mget", "ping":
		return true
	}
	return false
}
