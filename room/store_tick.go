package room

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KnownStock is what an instance knows of the units of a room's SKUs.
type KnownStock struct {
	Known          bool
	SKUs           string // a fingerprint of their list
	Epoch, Version int64  // sums over the SKUs: of a list, the higher epoch, then version, is newer
	Free, Held     int64
	Hold           time.Duration // for so long a unit is held at most
	OffSale        int64         // of Held: units that no order holds, of SKUs that are paused or closed
}

// storeReading is what one tick has read, beside the state.
type storeReading struct {
	State    *State
	Override string  // of an operator
	said     said    // what operators have said: Override, and the rate and message of State
	Seed     string  // in hexadecimal digits; a secret until the draw
	Credit   float64 // calls that the rate allows beside those since MovedAt
	MovedAt  int64   // Unix ms; 0 = never
	period   int64   // ms from one round of the beacon to the next
	stockAt  int64   // Unix ms: when the stock of State was told
}

// stockLasts is how long the stock is known after an instance has told it, in ms.
const stockLasts = 5000

// Tick tells Redis what this instance knows, and reads the state. rules and sale are those of the room, last is the
// state that was read before; nil = none.
func (s *Store) Tick(ctx context.Context, rules *Rules, sale Sale, stock *KnownStock, last *State) (
	storeReading, error,
) {
	known, seen, of, seed, order, read := 0, int64(0), "", newSeed(), FIFO, new(State)
	if rules.Draw {
		order = Draw
	}
	news := ""
	switch {
	case last == nil:
		news = "started"
	case !last.toldHours(sale):
		news = "moved"
	}
	round, due := firstRound(rules, sale)
	told := stock
	if told == nil {
		told = new(KnownStock)
	}
	if told.Known {
		known = 1
	}
	if last != nil {
		seen, of, read = last.Count, drawOf(last), last
	}
	heard := s.heard(issue{})
	keys := []string{s.keys.room, s.keys.steps, s.keys.inside, s.keys.good, s.keys.people, s.keys.lately}
	reply, err := s.run(ctx, "tick", keys, sale.Starts, sale.Ends, news, known, told.Epoch, told.Version, told.Free,
		told.Held, told.Hold.Milliseconds(), seen, order, hex.EncodeToString(seed), Commit(seed), told.SKUs, round,
		due, rules.Beacon.Period, rules.BeaconKey, of, heard.number, heard.opened, read.Starts, read.Ends, read.hours,
		rules.ClaimWithin.Milliseconds())
	if err != nil {
		return storeReading{}, fmt.Errorf("read the room: %w", err)
	}
	parts, ok := reply.([]any)
	if !ok || len(parts) != 7 {
		return storeReading{}, fmt.Errorf("read the room: a reply of another form: %v", reply)
	}
	fields, ok1 := texts(parts[0])
	lines, ok2 := texts(parts[4])
	if !ok1 || !ok2 || len(fields)%2 != 0 {
		return storeReading{}, fmt.Errorf("read the room: a reply of another form: %v", reply)
	}
	r := readFields(fields)
	r.State.Inside, r.State.At, r.State.Count = whole(parts[1]), whole(parts[2]), whole(parts[3])
	r.State.People, r.State.Lately = whole(parts[5]), whole(parts[6])
	s.heard(issue{r.State.Opened, r.State.Issued})
	r.State.Told, r.State.Stocked = sale, stock != nil
	if r.MovedAt > r.State.At+time.Second.Milliseconds() {
		r.MovedAt = 0 // it is of a clock that ran ahead: no one would be called until then
	}
	age := r.State.At - r.stockAt // below 0 by a clock that ran ahead
	r.State.Known = stock != nil && max(age, -age) < stockLasts
	if of != drawOf(r.State) {
		last = nil // its steps are others
	}
	r.State.Steps, err = merge(last, lines, r.State.Count)
	if errors.Is(err, errOtherSteps) {
		whole := *last
		whole.Count, whole.Steps = 0, nil
		return s.Tick(ctx, rules, sale, stock, &whole)
	}
	if err != nil {
		return storeReading{}, err
	}
	r.State.Draw = r.Seed != ""
	if r.State.Lottery.DrawnBy != "" {
		r.State.Lottery.Seed = r.Seed
	}
	return r, nil
}

// drawOf tells the steps of a room from those of the sale before, or of the draw before its start was moved.
func drawOf(s *State) string { return fmt.Sprintf("%d %d", s.Opened, s.Lottery.Redrawn) }

func texts(v any) (list []string, ok bool) {
	all, ok := v.([]any)
	for _, one := range all {
		text, isText := one.(string)
		list, ok = append(list, text), ok && isText
	}
	return list, ok
}

// firstRound is the first round of the room's beacon after the start, and when it is published; 0 = it has no beacon.
func firstRound(rules *Rules, sale Sale) (round, due int64) {
	if rules.BeaconKey == "" {
		return 0, 0
	}
	return rules.Beacon.After(sale.Starts)
}

// newSeed is one for a new draw.
func newSeed() []byte {
	seed := make([]byte, SeedSize)
	_, _ = rand.Read(seed) // never fails
	return seed
}

// readFields reads the hash. A field that is missing is 0.
func readFields(fields []string) storeReading {
	r := storeReading{State: &State{}}
	s := r.State
	numbers := map[string]*int64{"opened": &s.Opened, "starts": &s.Starts, "ends": &s.Ends,
		"said_hours": &s.hours, "issued": &s.Issued, "early": &s.Early, "early_people": &s.EarlyPeople,
		"serving": &s.Serving, "threshold": &s.Threshold, "called": &s.Called, "claimed": &s.Claimed,
		"used": &s.Used, "expired": &s.Expired, "free": &s.Free, "held": &s.Held, "returns": &s.Returns,
		"round": &s.Lottery.BeaconRound, "due": &s.Lottery.BeaconAt, "period": &r.period,
		"redrawn": &s.Lottery.Redrawn, "moves": &s.Moves, "moved_at": &r.MovedAt, "stock_at": &r.stockAt}
	for i, field := range saidFields {
		numbers["said_"+field] = &r.said.number[i]
	}
	words := map[string]*string{"word": &r.said.values[0], "rate": &r.said.values[1], "message": &r.said.values[2],
		"seed": &r.Seed, "commit": &s.Lottery.Commit,
		"key": &s.Lottery.BeaconKey, "beacon": &s.Lottery.Beacon, "drawn_by": &s.Lottery.DrawnBy}
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		switch {
		case numbers[name] != nil:
			*numbers[name] = whole(value)
		case words[name] != nil:
			*words[name] = value
		case strings.HasPrefix(name, "w"):
			if class, err := strconv.Atoi(name[1:]); err == nil && class >= 0 && class < WaitClasses {
				s.Waits[class] = whole(value)
			}
		case name == "credit":
			r.Credit, _ = strconv.ParseFloat(value, 64)
		}
	}
	r.said.opened = s.Opened
	r.obey(r.said)
	return r
}

// errOtherSteps: Redis has lost steps that the caller knows, and others have taken their place. All are read anew.
var errOtherSteps = errors.New("the steps of the room are others")

// merge is the steps of last with the lines that came, of which the first one may be its last step. What it returns
// shares no memory that changes.
func merge(last *State, lines []string, count int64) ([]Step, error) {
	var came []Step
	for _, line := range lines {
		step, err := readStep(line)
		if err != nil {
			return nil, err
		}
		came = append(came, step)
	}
	if last == nil || last.Count > count || len(last.Steps) == 0 {
		return came, nil
	}
	if last.Count == count && len(came) == 1 && last.Steps[len(last.Steps)-1] == came[0] {
		return last.Steps, nil
	}
	keep := len(last.Steps) - 1
	switch more := count - last.Count + 1; {
	case int64(len(came)) < more: // more were dropped than this instance has
		keep = 0
	case int64(len(came)) == more && came[0].At != last.Steps[keep].At: // calls of a second join its step; its time stays
		return nil, errOtherSteps
	}
	all := slices.Concat(last.Steps[:keep], came)
	return all[max(0, len(all)-MaxSteps):], nil
}

func readStep(line string) (step Step, err error) {
	parts := strings.Fields(line)
	if len(parts) != 4 {
		return step, fmt.Errorf("read the room: a step of another form: %.80q", line)
	}
	for i, to := range []*int64{&step.At, &step.Serving, &step.Threshold, &step.Called} {
		if *to, err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return step, fmt.Errorf("read the room: a step of another form: %.80q", line)
		}
	}
	return step, nil
}

// Create makes the room where Redis does not know it, or where that of Redis is of a sale that is over. known is what
// this instance has read of it before, so that a Redis that has lost all costs no person a place; an empty Reading
// makes a new room by rules. It reports whether the room was made.
func (s *Store) Create(ctx context.Context, rules *Rules, sale Sale, known storeReading) (made bool, err error) {
	fields := known.fields(sale)
	if heard := s.heard(issue{}); known.State != nil && heard.opened == known.State.Opened {
		fields = append(fields, "issued", heard.number) // joins since the last look
	}
	if known.State == nil && rules.Draw {
		seed := newSeed()
		fields = append(fields, "seed", hex.EncodeToString(seed), "commit", Commit(seed))
		if round, due := firstRound(rules, sale); round > 0 {
			fields = append(fields, "round", round, "due", due, "key", rules.BeaconKey, "period", rules.Beacon.Period)
		}
	}
	args := append([]any{sale.Starts, len(fields) / 2}, fields...)
	if known.State != nil {
		for _, step := range known.State.Steps {
			args = append(args, step.String())
		}
	}
	keys := []string{s.keys.room, s.keys.steps, s.keys.good, s.keys.used, s.keys.inside, s.keys.people, s.keys.lately}
	reply, err := s.run(ctx, "create", keys, args...)
	if err != nil {
		return false, fmt.Errorf("make the room: %w", err)
	}
	return whole(reply) == 1, nil
}

// fields are names and values in turn.
func (r *storeReading) fields(sale Sale) []any {
	s := r.State
	if s == nil {
		return []any{"starts", sale.Starts, "ends", sale.Ends, "moves", 0}
	}
	fields := []any{"starts", s.Starts, "ends", s.Ends, "said_hours", s.hours, "moves", 0}
	for i, field := range saidFields {
		if r.said.values[i] != "" {
			fields = append(fields, field, r.said.values[i])
		}
		if r.said.number[i] > 0 {
			fields = append(fields, "said_"+field, r.said.number[i])
		}
	}
	for _, f := range []struct {
		name  string
		value int64
	}{{"opened", s.Opened}, {"issued", s.Issued}, {"serving", s.Serving}, {"threshold", s.Threshold},
		{"called", s.Called}, {"claimed", s.Claimed}, {"used", s.Used}, {"expired", s.Expired},
		{"steps", int64(len(s.Steps))}, {"redrawn", s.Lottery.Redrawn}, {"early_people", s.EarlyPeople}} {
		fields = append(fields, f.name, f.value)
	}
	for class, n := range s.Waits {
		if n > 0 {
			fields = append(fields, "w"+strconv.Itoa(class), n)
		}
	}
	if s.Lottery.BeaconRound > 0 {
		fields = append(fields, "round", s.Lottery.BeaconRound, "due", s.Lottery.BeaconAt, "key", s.Lottery.BeaconKey,
			"period", r.period)
	}
	fields = append(fields, "lost", 1) // the count of people is of those who join from now on
	if s.Early > 0 || s.Lottery.DrawnBy != "" {
		fields = append(fields, "early", s.Early)
	}
	for _, f := range [][2]string{{"seed", r.Seed},
		{"commit", s.Lottery.Commit}, {"beacon", s.Lottery.Beacon}, {"drawn_by", s.Lottery.DrawnBy}} {
		if f[1] != "" {
			fields = append(fields, f[0], f[1])
		}
	}
	return fields
}

// Move makes a move on the state that was read, with what is left of the rate. It reports false when another instance
// has moved the room since.
func (s *Store) Move(ctx context.Context, on *State, m Move, credit float64) (bool, error) {
	reply, err := s.run(ctx, "move", []string{s.keys.room, s.keys.steps}, on.Moves, m.Serving, m.Threshold, m.Calls,
		strconv.FormatFloat(credit, 'f', 9, 64), MaxSteps)
	if err != nil {
		return false, fmt.Errorf("move the room: %w", err)
	}
	return whole(reply) == 1, nil
}
