package ledger

import (
	"fmt"
)

// versionSize is how many values a StockVersion has at the beginning of a reply. In stockSize, the numbers of a stock
// and whether it was done follow.
const (
	versionSize = 8
	stockSize   = versionSize + 7
)

// versionOf reads free, epoch, ver, state, opens, closes, held, sale.
func versionOf(reply []any) (StockVersion, error) {
	var h StockVersion
	state, ok := reply[3].(string)
	h.State = stateOf(state)
	for i, to := range []*int64{&h.Free, &h.Epoch, &h.Ver, nil, &h.Opens, &h.Closes, &h.Held, &h.Sale} {
		if to != nil && ok {
			*to, ok = reply[i].(int64)
		}
	}
	if !ok {
		return StockVersion{}, fmt.Errorf("the stock version %v cannot be read", reply[:versionSize])
	}
	return h, nil
}

// stateOf is the state of a name: of those that there are no text of its own is kept, which each rejection would have
// to read.
func stateOf(name string) State {
	for _, s := range [...]State{On, Paused, Ended, Frozen,
		Verifying, Lost} {
		if name == string(s) {
			return s
		}
	}
	return State(name)
}

// What a script says of what was asked for, after the numbers.
const (
	rejected = 0
	done     = 1
	conflict = 2
)

// stockOf reads all numbers, and what became of what was asked for.
func stockOf(reply []any) (s Stock, found int64, err error) {
	if len(reply) != stockSize {
		return Stock{}, rejected, fmt.Errorf("%d values came back for a stock", len(reply))
	}
	if s.StockVersion, err = versionOf(reply); err != nil {
		return Stock{}, rejected, err
	}
	for i, to := range []*int64{&s.Total, &s.Held, &s.Sold, &s.Limit, &found, &s.Untold} {
		n, ok := reply[versionSize+i].(int64)
		if !ok {
			return Stock{}, rejected, fmt.Errorf("the stock %v cannot be read", reply)
		}
		*to = n
	}
	why, ok := reply[stockSize-1].(string)
	if !ok {
		return Stock{}, rejected, fmt.Errorf("the stock %v cannot be read", reply)
	}
	s.Why = why
	return s, found, nil
}
