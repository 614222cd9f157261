package room

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Document is what everybody may read of a room. It is the same for all.
type Document struct {
	Room       string   `json:"room"`
	ServerTime int64    `json:"server_time_ms"`
	Phase      Phase    `json:"phase"`
	Order      string   `json:"order"`
	OpensAt    int64    `json:"opens_at_ms,omitempty"`  // of closed
	StartsAt   int64    `json:"starts_at_ms,omitempty"` // of closed and pre_queue
	Issued     int64    `json:"issued"`
	Early      int64    `json:"early,omitempty"` // people who take part in the draw, about
	Serving    int64    `json:"serving"`
	Threshold  int64    `json:"threshold"`
	PerSecond  float64  `json:"per_second,omitempty"` // measured; absent = not known
	Left       string   `json:"left,omitempty"`       // "none" "few" "many"; absent = not said, or not known
	Returns    int64    `json:"returns_until_ms,omitempty"`
	Poll       Poll     `json:"poll"`
	NoticeMS   int64    `json:"notice_ms"` // from a call until a pass may be claimed
	ClaimMS    int64    `json:"claim_within_ms"`
	Draw       *Lottery `json:"draw,omitempty"`
	Stale      int64    `json:"stale_ms,omitempty"` // how old all of this is, where Redis is away
	Message    string   `json:"message,omitempty"`
}

// Poll is how a client computes the pause until its next poll: its ETA over the divisor, within floor and ceiling.
// Where fewer people than Soon are before it the ceiling is SoonMS.
type Poll struct {
	FloorMS   int64 `json:"floor_ms"`
	CeilingMS int64 `json:"ceiling_ms"`
	Divisor   int64 `json:"divisor"`
	Soon      int64 `json:"soon"`
	SoonMS    int64 `json:"soon_ms"`
}

// Document is what is published of s. So many units or less are few; below 0 = nothing is said of them.
func (r *Rules) Document(s *State, sale Sale, few, stale int64) Document {
	d := Document{Room: r.Name, ServerTime: s.At, Phase: s.Phase, Order: FIFO, Issued: s.Issued, Serving: s.Serving,
		Threshold: s.Threshold, Stale: stale, Message: s.Message, ClaimMS: r.ClaimWithin.Milliseconds(),
		NoticeMS: r.Notice(s).Milliseconds(), Poll: Poll{r.PollFloor.Milliseconds(), r.Ceiling(s).Milliseconds(),
			pollDivisor, r.soon(s), r.shortCeiling().Milliseconds()}}
	switch s.Phase {
	case Closed:
		d.OpensAt, d.StartsAt = sale.Starts-r.Opens.Milliseconds(), sale.Starts
	case PreQueue:
		d.StartsAt = sale.Starts
	case LastChance:
		d.Returns = s.Returns
	}
	if s.moves() {
		d.PerSecond, _ = strconv.ParseFloat(strconv.FormatFloat(s.perSecond(), 'f', 1, 64), 64)
	}
	if s.Draw {
		drawn := s.Lottery
		d.Order, d.Draw = Draw, &drawn
		if drawn.Drawn() {
			d.Early = s.InDraw()
		}
	}
	if s.Stocked && s.Known && few >= 0 {
		d.Left = left(s.Free, few)
	}
	return d
}

func left(free, few int64) string {
	switch {
	case free <= 0:
		return "none"
	case free <= few:
		return "few"
	}
	return "many"
}

var (
	errNoDraw   = errors.New("the room calls people in the order in which they came: there is no draw to verify")
	errNotDrawn = errors.New("the draw has not been made yet: the seed is published with it")
)

// Record is what is published of a draw and of how far the room has moved since: who has it can compute whether and
// when a user was called.
type Record struct {
	Room     string  `json:"room"`
	Order    string  `json:"order"`
	StartsAt int64   `json:"starts_at_ms"` // who joined before is in the draw; Unix ms
	Early    int64   `json:"early"`
	Draw     Lottery `json:"draw"`
	Steps    []Step  `json:"steps"`
	Dropped  int64   `json:"dropped,omitempty"` // steps that are too old to be kept
}

// Record is that of s.
func (r *Rules) Record(s *State) Record {
	rec := Record{Room: r.Name, Order: FIFO, StartsAt: s.Starts, Draw: s.Lottery, Steps: s.Steps,
		Dropped: s.Count - int64(len(s.Steps))}
	if rec.Steps == nil {
		rec.Steps = []Step{}
	}
	if s.Draw {
		rec.Order = Draw
		if s.Lottery.Drawn() {
			rec.Early = s.InDraw()
		}
	}
	return rec
}

// Verdict is what a record says of one user who joined before the start.
type Verdict struct {
	Score    int64 // 0 to ScoreEnd-1
	Place    int64 // about, from 1
	CalledAt int64 // Unix ms; 0 = not called
}

// Verify computes from a record alone where a user stood in the draw. It finds a seed that is not the committed one, a
// beacon that is not the signature of its round or was known before the start, and a threshold that has fallen.
func (rec *Record) Verify(user string) (v Verdict, err error) {
	if rec.Order != Draw {
		return v, errNoDraw
	}
	if !rec.Draw.Drawn() {
		return v, errNotDrawn
	}
	final, err := rec.Draw.Check()
	if err == nil && rec.Draw.DrawnBy == ByBeacon {
		err = rec.Draw.checkRound(rec.StartsAt)
	}
	if err != nil {
		return v, err
	}
	for i := 1; i < len(rec.Steps); i++ {
		a, b := &rec.Steps[i-1], &rec.Steps[i]
		if b.Threshold < a.Threshold || b.Serving < a.Serving || b.At < a.At {
			return v, fmt.Errorf("the threshold or the number has fallen at %s: it may only rise", clock(b.At))
		}
	}
	v.Score = final.Score([]byte(user))
	s := State{Early: rec.Early, Steps: rec.Steps}
	v.Place = s.undrawn(0) - s.undrawn(v.Score) + 1
	v.CalledAt = s.calledAt(0, v.Score)
	return v, nil
}

// lineOf is the JSON of v, which is one of the values of this package.
func lineOf(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a room is no JSON: " + err.Error())
	}
	return append(text, '\n')
}
