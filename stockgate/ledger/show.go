package ledger

import (
	"context"
	"sync/atomic"
	"time"
)

// showEvery is how old what is shown of a SKU that somebody asks for may become before this desk looks: others sell too.
const showEvery = int64(500 * time.Millisecond)

// showing is what is told to everybody who asks what is left.
type showing struct {
	looking atomic.Bool
	at      atomic.Int64 // ns of the last look
	held    atomic.Int64 // units, as that found them; of the version ver
	ver     atomic.Int64
}

// Shown is a SKU's newest hint, and whether units of it are held; Held below 0 = not known.
type Shown struct {
	Hint
	Held int64
}

// Show tells from memory what is known of sku at now (ns of Options.Now), and sees to it that this is never much older
// than half a second while anybody asks: one look for all who do. ok is false for a SKU that this desk has not met, or
// that has no ledger: invented ones cost nothing.
func (d *Desk) Show(now int64, sku []byte) (s Shown, ok bool) {
	l := d.lines.find(sku)
	if l == nil {
		return Shown{}, false
	}
	v := l.view.Load()
	if v == nil && !l.watched.Load() || v != nil && v.absent {
		return Shown{}, false
	}
	if now-l.shown.at.Load() > showEvery && l.shown.looking.CompareAndSwap(false, true) {
		d.lookAgain(l)
	}
	if v == nil {
		return Shown{}, false
	}
	s = Shown{Hint: v.Hint, Held: -1}
	if l.shown.ver.Load() == v.Ver {
		s.Held = l.shown.held.Load()
	}
	return s, true
}

// lookAgain reads the numbers of l in the background. looking is set.
func (d *Desk) lookAgain(l *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone || d.closed.Load() {
		return // looking stays: nobody asks here any more
	}
	d.work.Go(func() {
		defer l.shown.looking.Store(false)
		ctx, cancel := context.WithTimeout(d.ctx, d.o.Timeout)
		defer cancel()
		d.calls.note(callFind, 1)
		s, ok, err := d.store.Look(ctx, l.sku)
		l.shown.at.Store(d.o.Now())
		if err != nil || !ok {
			return // what is wrong is said by whoever buys
		}
		l.shown.ver.Store(-1)
		l.shown.held.Store(s.Held)
		l.shown.ver.Store(s.Ver)
		d.note(l, s.Hint)
	})
}
