package room

import (
	"net/http"
	"sync"
	"time"

	"sluice/proxy"
)

// checkDraw checks a draw that was made, once. One that is wrong counts as not made: no people are called by it, and it
// is not published.
func (r *Room) checkDraw(l *Lottery) {
	if !l.Drawn() {
		return
	}
	if *l != r.drawn {
		final, err := l.Check()
		r.drawn, r.final = *l, &final
		if err != nil {
			r.final = nil
			r.o.Log.Error("room: Redis has a draw that is wrong; no people are called by it: move the start for a new draw",
				"room", r.o.Rules.Name, "err", err)
		}
	}
	if r.final == nil {
		l.Seed, l.DrawnBy, l.Beacon = "", "", ""
	}
}

// recordCache is the record as it was written last. It may be large.
type recordCache struct {
	mu    sync.Mutex
	state *State
	at    time.Time
	text  []byte
	tag   string
}

// answerDraw answers with the record of the draw, which is written once a second at most.
func (r *Room) answerDraw() proxy.RoomAnswer {
	c, s := &r.record, r.view.Load().state
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != s && time.Since(c.at) > time.Second {
		record := r.o.Rules.Record(s)
		c.state, c.at, c.text = s, time.Now(), lineOf(&record)
		c.tag = `"` + hexadecimal(uint64(s.Moves)) + "-" + hexadecimal(uint64(len(c.text))) + "-" + s.Lottery.DrawnBy + `"`
	}
	return proxy.RoomAnswer{Status: http.StatusOK, Type: typeJSON, Body: c.text, Tag: "W/" + c.tag, Mark: c.tag}
}
