package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// hintSize is how many values a hint has at the beginning of a reply; the numbers of a stock and whether it was
// done follow there.
const (
	hintSize  = 7
	stockSize = hintSize + 6
)

// hintOf reads free, epoch, ver, state, opens, closes, taken.
func hintOf(reply []any) (Hint, error) {
	var h Hint
	state, ok := reply[3].(string)
	h.State = stateOf(state)
	for i, to := range []*int64{&h.Free, &h.Epoch, &h.Ver, nil, &h.Opens, &h.Closes, &h.Taken} {
		if to != nil && ok {
			*to, ok = reply[i].(int64)
		}
	}
	if !ok {
		return Hint{}, fmt.Errorf("the hint %v cannot be read", reply[:hintSize])
	}
	return h, nil
}

// stateOf is the state of a name: of those that there are no text of its own is kept, which each refusal would have to read.
func stateOf(name string) State {
	for _, s := range [...]State{On, Paused, Ended, Frozen, Doubted, Lost} {
		if name == string(s) {
			return s
		}
	}
	return State(name)
}

// What a script says of what was asked for, after the numbers.
const (
	refused  = 0
	done     = 1
	conflict = 2
)

// stockOf reads all numbers, and what became of what was asked for.
func stockOf(reply []any) (s Stock, found int64, err error) {
	if len(reply) != stockSize {
		return Stock{}, refused, fmt.Errorf("%d values came back for a stock", len(reply))
	}
	if s.Hint, err = hintOf(reply); err != nil {
		return Stock{}, refused, err
	}
	for i, to := range []*int64{&s.Total, &s.Held, &s.Sold, &s.Limit, &found} {
		n, ok := reply[hintSize+i].(int64)
		if !ok {
			return Stock{}, refused, fmt.Errorf("the stock %v cannot be read", reply)
		}
		*to = n
	}
	why, ok := reply[stockSize-1].(string)
	if !ok {
		return Stock{}, refused, fmt.Errorf("the stock %v cannot be read", reply)
	}
	s.Why = why
	return s, found, nil
}

// decode reads a record as it lies in Redis: state|quantity|time|user, the user last since it may hold any byte.
// R, refunded, is X to everybody else: only whether a further refund was done already hangs on it.
func decode(serial, text string) (Record, error) {
	parts := strings.SplitN(text, "|", 4)
	if len(parts) != 4 || len(parts[0]) != 1 || !strings.Contains("HCXR", parts[0]) {
		return Record{}, fmt.Errorf("the record of %q cannot be read", serial)
	}
	quantity, err1 := digits(parts[1])
	deadline, err2 := digits(parts[2])
	if err1 != nil || err2 != nil {
		return Record{}, fmt.Errorf("the record of %q cannot be read", serial)
	}
	status := parts[0][0]
	if status == refunded {
		status = released
	}
	return Record{Serial: serial, User: parts[3], Quantity: quantity, Status: status, Deadline: deadline}, nil
}

// digits reads 1 to 15 decimal digits and nothing else.
func digits(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > 15 {
		return 0, fmt.Errorf("%.32q is not a number", s)
	}
	return int64(n), nil
}
