package room

import (
	"fmt"
	"time"
)

// otherFor is how long hours differ before an instance says so: not all instances are reloaded at once.
const otherFor = 5 * time.Second

// toldHours reports whether the instance that has read s had told the hours of sale.
func (s *State) toldHours(sale Sale) bool {
	return s.Told.Starts == sale.Starts && s.Told.Ends == sale.Ends
}

// compareHours notes whether the room has had other hours than sale for otherFor. The log has it once. Times that are
// over by both hours make no difference.
func (r *Room) compareHours(s *State, sale Sale) {
	same := func(has, own int64) bool { return has == own || s.At >= max(has, own) }
	switch {
	case same(s.Starts, sale.Starts) && same(s.Ends, sale.Ends):
		r.since = time.Time{}
		r.other.Store(nil)
	case r.since.IsZero():
		r.since = time.Now()
	case time.Since(r.since) >= otherFor:
		text := fmt.Sprintf("the waiting room %q has a sale from %s, and [[sale]] of this instance says from %s: another "+
			"instance has told it other hours: make the files the same, and restart this instance", r.o.Rules.Name,
			HoursText(s.Starts, s.Ends), HoursText(sale.Starts, sale.Ends))
		if r.other.Swap(&text) == nil {
			r.o.Log.Warn("room: " + text)
		}
	}
}

// OtherHours tells of hours that the room has and that are not those of its sale on this instance; "" = there are none.
func (r *Room) OtherHours() string {
	if text := r.other.Load(); text != nil {
		return *text
	}
	return ""
}

// HoursText shows hours, in Unix ms; 0 = no such bound.
func HoursText(starts, ends int64) string {
	text := func(ms int64) string {
		if ms == 0 {
			return "no bound"
		}
		return time.UnixMilli(ms).UTC().Format(time.RFC3339)
	}
	return text(starts) + " to " + text(ends)
}
