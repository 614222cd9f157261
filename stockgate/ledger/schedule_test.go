package ledger

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// step is one call of a schedule. Times are virtual. A step may come twice, late, or before the one that it answers:
// so does a message whose sender crashed, repeated itself, or was overtaken.
type step struct {
	call  string // "reserve", an Op, "sweep", "total", "state", "add", "hours"
	now   int64
	until int64 // deadline, keep or lease; of hours: when it closes
	items []Item
	epoch int64 // of reserve: 0 = any, 1 = the ledger's first, 2 = the one after ...
	total int64 // of total; of add: the difference; of hours: when it opens
	limit int64 // of total: a person's; of sweep: the most holds
	state State
	id    string // of add
}

// usual is what each serial is an order of, unless somebody reuses it. Bytes that could confuse a record are welcome.
func usual() []Item {
	return []Item{
		{
			Serial:   "a",
			User:     "ann",
			Quantity: 1,
		}, {Serial: "b|1|2|x", User: "ann", Quantity: 1}, {Serial: "op", User: "", Quantity: 1},
		{Serial: "r:a", User: "b|o\x00b", Quantity: 2}, {Serial: "\xff\n|", User: "ann", Quantity: 3},
		{Serial: "f", User: "b|o\x00b", Quantity: 1, Cart: "c1"}, {Serial: "g", User: "", Quantity: 2},
	}
}

func anItem(t *rapid.T) Item {
	i := rapid.SampledFrom(usual()).Draw(t, "item")
	switch rapid.IntRange(0, 15).Draw(t, "other content") {
	case 0:
		i.User = rapid.SampledFrom([]string{"", "ann", "b|o\x00b", "eve"}).Draw(t, "user")
	case 1:
		i.Quantity = rapid.Int64Range(1, 3).Draw(t, "quantity")
	case 2:
		i.Cart = rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "cart")
	}
	return i
}

// drawnCalls are drawn as often as they are named.
func drawnCalls() []string {
	return []string{
		"reserve", "reserve", "reserve", "reserve", "reserve", "reserve",
		"confirm", "confirm", "release", "release", "refund", "refund", "adopt",
		"sweep", "sweep", "total", "state", "add", "add", "hours", "hours", "again", "again",
	}
}

func aStep(t *rapid.T, now int64) step {
	s := step{call: rapid.SampledFrom(drawnCalls()).Draw(t, "call"), now: now}
	s.until = now + rapid.Int64Range(0, 30).Draw(t, "until")
	switch s.call {
	case "sweep":
		s.limit = rapid.Int64Range(1, 3).Draw(t, "limit")
	case "total":
		s.total = rapid.Int64Range(0, 7).Draw(t, "total")
		s.limit = rapid.Int64Range(KeepLimit, 3).Draw(t, "a person's limit")
	case "add":
		s.total = rapid.SampledFrom([]int64{-3, -1, 1, 2}).Draw(t, "difference")
		s.id = rapid.SampledFrom([]string{"", "", "1", "a=1", "a=1=-1", "=", "%d-"}).Draw(t, "id")
	case "hours":
		s.total = rapid.SampledFrom([]int64{0, 0, 0, now, now + 1, now + 20}).Draw(t, "opens")
		s.until = max(now, s.total) + rapid.SampledFrom([]int64{1, 5, 40}).Draw(t, "closes") // by steps that the time takes
		if rapid.Bool().Draw(t, "stays open") {
			s.until = 0
		}
	case "state":
		s.state = rapid.SampledFrom(
			[]State{
				On,
				On,
				On,
				On,
				Paused,
				Ended,
				Frozen,
			},
		).Draw(
			t,
			"state",
		)
	case "again":
	default:
		s.items = rapid.SliceOfN(rapid.Custom(anItem), 1, 4).Draw(t, "items")
		s.epoch = rapid.SampledFrom([]int64{0, 0, 0, 1, 1, 2, 3}).Draw(t, "epoch")
	}
	return s
}

// schedules draws schedules of up to 31 steps; most begin with a ledger.
func schedules() *rapid.Generator[[]step] {
	return rapid.Custom(func(t *rapid.T) []step {
		var all []step
		now := int64(1_000)
		if rapid.IntRange(0, 9).Draw(t, "begin") > 0 {
			total := rapid.Int64Range(1, 7).Draw(t, "total")
			all = append(all, step{call: "total", now: now, total: total, limit: rapid.Int64Range(0, 3).Draw(t, "limit")})
		}
		for range rapid.IntRange(12, 30).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 0, 1, 5, 40}).Draw(t, "later")
			s := aStep(t, now)
			if s.call == "again" && len(all) > 0 {
				late := now
				s = all[rapid.IntRange(0, len(all)-1).Draw(t, "which")]
				if s.call == "sweep" {
					s.now = late
				}
			}
			if s.call != "again" {
				all = append(all, s)
			}
		}
		return all
	})
}

// play is one schedule on one SKU of a store, beside the model.
type play struct {
	store   *Store
	sku     string
	model   model
	first   int64 // epoch
	adopted bool  // beyond the total, perhaps
	keys    func(p *play) error
}

// run makes each step in both, and says where they first differ.
func (p *play) run(ctx context.Context, steps []step) error {
	for n, s := range steps {
		if err := p.step(ctx, s); err != nil {
			return fmt.Errorf("step %d, %+v: %w", n, s, err)
		}
		if err := p.compare(ctx, s); err != nil {
			return fmt.Errorf("after step %d, %+v: %w", n, s, err)
		}
	}
	return nil
}

func (p *play) step(ctx context.Context, s step) error {
	switch s.call {
	case "reserve":
		return p.reserve(ctx, s)
	case "sweep":
		got, err := p.store.Sweep(ctx, p.sku, s.now, s.until, int(s.limit))
		want := p.model.sweep(s.now, s.until, int(s.limit))
		return errors.Join(err, differ("swept", slices.Concat(got), want))
	case "total":
		return p.total(ctx, s)
	case "state":
		got, err := p.store.SetState(ctx, p.sku, s.state)
		if !p.model.setState(s.state) {
			if !errors.Is(err, ErrUnknownSKU) {
				return fmt.Errorf("no ledger, but: %w", err)
			}
			return nil
		}
		return errors.Join(err, differ("stock", got, p.model.stock()))
	}
	if s.call == "add" || s.call == "hours" {
		return p.change(ctx, s)
	}
	return p.finish(ctx, s)
}

// change is what needs a ledger and answers with the numbers.
func (p *play) change(ctx context.Context, s step) error {
	var got Stock
	var err error
	may := true
	if s.call == "add" {
		got, err = p.store.Add(ctx, p.sku, s.total, s.id)
		may = !p.model.exists || p.model.add(s.total, s.id)
	} else {
		got, err = p.store.SetSchedule(ctx, p.sku, s.total, s.until)
		if p.model.exists {
			p.model.setHours(s.total, s.until)
		}
	}
	switch {
	case !p.model.exists && !errors.Is(err, ErrUnknownSKU):
		return fmt.Errorf("no ledger, but: %w", err)
	case !may && err == nil:
		return errors.New("what may not be added was accepted")
	case !p.model.exists || !may:
		return nil
	}
	return errors.Join(err, differ("stock", got, p.model.stock()))
}

func (p *play) reserve(ctx context.Context, s step) error {
	epoch := s.epoch
	if epoch > 0 {
		epoch += p.first
	}
	codes := make([]Code, len(s.items))
	hint, err := p.store.Reserve(ctx, p.sku, epoch, s.now, s.until, s.items, codes)
	want := p.model.reserve(epoch, s.now, s.until, s.items)
	return errors.Join(err, differ("codes", codes, want), differ("hint", hint, p.model.hint()))
}

func (p *play) finish(ctx context.Context, s step) error {
	done := make([]Done, len(s.items))
	hint, err := p.store.Finish(ctx, p.sku, s.now, s.until, Op(s.call), s.items, done)
	want := p.model.finish(Op(s.call), s.until, s.items)
	p.adopted = p.adopted || s.call == "adopt"
	return errors.Join(err, differ("done", done, want), differ("hint", hint, p.model.hint()))
}

func (p *play) total(ctx context.Context, s step) error {
	got, err := p.store.SetTotal(ctx, p.sku, s.total, s.limit)
	if !p.model.exists && s.limit == KeepLimit {
		if !errors.Is(err, ErrUnknownSKU) {
			return fmt.Errorf("no ledger and no limit, but: %w", err)
		}
		return nil
	}
	if !p.model.exists {
		p.first = got.Epoch - 1
	}
	if !p.model.setTotal(s.total, s.limit, got.Epoch) {
		if err == nil {
			return errors.New("a total less than what is taken was accepted")
		}
		return nil
	}
	return errors.Join(err, differ("stock", got, p.model.stock()))
}

// compare looks at everything that can be seen from outside, and at the keys where there are some.
func (p *play) compare(ctx context.Context, s step) error {
	stock, ok, err := p.store.ReadStock(ctx, p.sku)
	if err := errors.Join(err, differ("exists", ok, p.model.exists),
		differ("stock", stock, p.model.stock())); err != nil {
		return err
	}
	if taken := stock.Held + stock.Sold; stock.Held < 0 || stock.Sold < 0 || taken > stock.Total && !p.adopted {
		return fmt.Errorf("%d held + %d sold of %d", stock.Held, stock.Sold, stock.Total)
	}
	for _, i := range s.items {
		got, ok, err := p.store.Find(ctx, p.sku, i.Serial)
		var want Record
		o := p.model.find(i.Serial)
		if o != nil {
			want = o.record()
		}
		if err := errors.Join(err, differ("found", ok, o != nil), differ("record", got,
			want)); err != nil {
			return err
		}
	}
	return p.keys(p)
}

// checks lets rapid try n schedules unless the command line asks for another number.
func checks(t *testing.T, n int) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = flag.Set("rapid.checks", f.DefValue) })
}
