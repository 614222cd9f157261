package ledger

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// doubt is a serial of which somebody must find out what became of it: an order that was forwarded and whose
// outcome is unknown, an overdue hold, or a stray. A stray is a serial of which a sending to the store was unsure, and no later one
// found its record: if its unit was taken, or is yet, nobody was told so and it was not forwarded. All times are Unix ms.
type doubt struct {
	asks  bool    // a hold that may have been forwarded: the shop is asked
	mine  []int64 // of a stray: the deadlines of the unsure calls
	tries int
	looks int   // at the ledger that found no stray
	due   int64 // not before
	until int64 // of a hold: when the next sweep may hand it to somebody else
}

const (
	mostDoubts   = 8192 // of one SKU; what does not fit is found by a sweep when its hold is overdue
	mostUnsure   = 8    // calls of one stray
	strayLooks   = 6    // for a stray that is not in the ledger: a call may still arrive
	longestPause = int64(5 * time.Minute / time.Millisecond)
)

// Unknown says that an order was forwarded and no answer told whether it exists. Its unit stays held, and the
// oracle is asked about it from now on, before its deadline too.
func (d *Desk) Unknown(sku, serial string) {
	if s, ok := d.store.(forgetful); ok {
		s.wonders(sku, serial)
	}
	l := d.open([]byte(sku))
	if l == nil {
		return // its hold is found when it is overdue
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMilli()
	d.wonder(l, serial, now, now+d.o.Hold.Milliseconds())
}

// wonder makes serial a hold in doubt, until a time or further. mu is held.
func (d *Desk) wonder(l *line, serial string, now, until int64) {
	c := l.doubts[serial]
	if c == nil {
		if c = d.doubt(l, serial, now); c == nil {
			return
		}
	}
	if !c.asks {
		c.asks = true
		d.unknown.Add(1)
		l.events.unknown.Add(1)
	}
	c.until = max(c.until, until)
}

// doubt opens a doubt that is due at now, or returns nil when there are too many. mu is held.
func (d *Desk) doubt(l *line, serial string, now int64) *doubt {
	if len(l.doubts) >= mostDoubts {
		return nil
	}
	c := &doubt{due: now}
	l.doubts[serial] = c
	d.doubtful.add(l)
	return c
}

// undoubt closes a doubt. mu is held.
func (d *Desk) undoubt(l *line, serial string) {
	if c := l.doubts[serial]; c != nil && c.asks {
		d.unknown.Add(-1)
		l.events.unknown.Add(-1)
	}
	delete(l.doubts, serial)
}

// stray notes that a call for serial with a deadline was unsure. mu is held.
func (d *Desk) stray(l *line, serial string, deadline int64) {
	now := time.Now().UnixMilli()
	c := l.doubts[serial]
	if c == nil {
		if c = d.doubt(l, serial, now); c == nil {
			return
		}
	}
	if len(c.mine) == mostUnsure {
		c.mine = slices.Clone(c.mine[1:])
	}
	c.mine = append(c.mine, deadline)
	c.tries, c.looks, c.due = 0, 0, now
}

// strays reports whether a call for serial would have the deadline of one that is unsure: then the two holds could
// not be told from each other. mu is held.
func (d *Desk) strays(l *line, serial string) bool {
	c := l.doubts[serial]
	return c != nil && d.until() <= c.newest()
}

// newest is the deadline of the last unsure call; 0 = there is none.
func (c *doubt) newest() int64 {
	if len(c.mine) == 0 {
		return 0
	}
	return c.mine[len(c.mine)-1]
}

// later puts a doubt off, for twice as long each time. mu is held.
func (c *doubt) later(now int64) {
	c.due = now + min(1000<<min(c.tries, 20), longestPause)
	c.tries++
}

// doubtful are the lines that have doubts, and perhaps some that had: nobody looks for doubts anywhere else. It is safe for
// concurrent use; the mutex of a line is taken before its own.
type doubtful struct {
	mu  sync.Mutex
	all map[*line]struct{}
}

func (s *doubtful) add(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = make(map[*line]struct{})
	}
	s.all[l] = struct{}{}
}

func (s *doubtful) remove(l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, l)
}

// each returns all, in no order, so that none has to wait for the others again and again.
func (s *doubtful) each() []*line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.all))
}
