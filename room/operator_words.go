package room

import (
	"context"
	"fmt"
	"strconv"
	"sync"
)

// Fields that an operator sets.
const (
	FieldOverride = "word" // OverrideHold, OverrideDrain, OverrideOff; "" = the room goes by itself
	FieldRate     = "rate" // calls a second; "" = as configured
	FieldMessage  = "message"
)

// saidFields are these, in the order of said.
var saidFields = [...]string{FieldOverride, FieldRate, FieldMessage}

// said is what operators have said of the room that was opened at a time: a value for each field, and its number. Of two
// instances that know different values the one with the higher number is right.
type said struct {
	opened int64
	values [len(saidFields)]string
	number [len(saidFields)]int64 // 0 = nothing was said
}

// take takes in what one field has.
func (s *said) take(field, value string, number int64) {
	for i, name := range saidFields {
		if name == field && number >= s.number[i] {
			s.values[i], s.number[i] = value, number
		}
	}
}

// heard is what this instance has heard of what operators have said.
type heard struct {
	mu   sync.Mutex
	said said
}

// take takes in s, and returns all that is known of its room then.
func (h *heard) take(s said) said {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said.opened != s.opened {
		h.said = s
	}
	for i, field := range saidFields {
		h.said.take(field, s.values[i], s.number[i])
	}
	return h.said
}

func (h *heard) get() said {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

// Set says for an operator what a field is from now on, after what known has where Redis has lost that. Without a field
// it says that alone. It reports whether Redis had lost it, and returns known with what was said.
func (s *Store) Set(ctx context.Context, known said, field ...string) (now said, lost bool, err error) {
	args := []any{known.opened}
	for i, value := range known.values {
		args = append(args, value, known.number[i])
	}
	for _, f := range field {
		args = append(args, f)
	}
	reply, err := s.run(ctx, "set", []string{s.keys.room}, args...)
	if err != nil {
		return known, false, fmt.Errorf("set what operators say: %w", err)
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return known, false, fmt.Errorf("set what operators say: a reply of another form: %v", reply)
	}
	if len(field) > 0 {
		known.take(field[0], field[1], whole(parts[1]))
	}
	return known, whole(parts[0]) == 1, nil
}

// Set says for an operator what a field is from now on, as Store.Set does. This instance knows at once what was said.
func (r *Room) Set(ctx context.Context, field ...string) error {
	known := r.heard.get()
	now, lost, err := r.o.Store.Set(ctx, known, field...)
	if err != nil {
		return err
	}
	r.heard.take(now)
	if lost {
		r.o.Log.Warn("room: Redis has lost what an operator said; it is written again", "room", r.o.Rules.Name,
			"state", known.values[0], "rate", known.values[1], "message", known.values[2])
	}
	return nil
}

// restore has read say what operators have said, as this instance knows it, where Redis has lost that, and tells Redis.
func (r *Room) restore(ctx context.Context, read *storeReading) {
	if known := r.heard.take(read.said); known != read.said {
		read.obey(known)
		_ = r.Set(ctx) // else the next tick tries again
	}
}

// obey has r say what operators have said.
func (r *storeReading) obey(s said) {
	r.said = s
	r.Override, r.State.Message = s.values[0], s.values[2]
	r.State.Rate, _ = strconv.ParseFloat(s.values[1], 64) // what is no number is none
}
