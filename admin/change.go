package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

const (
	usualList = 1000    // of one answer, when the request does not say how many
	maxList   = 10_000  // of one answer
	maxBody   = 4 << 10 // bytes of a request
	maxKey    = 128     // bytes of an Idempotency-Key

	maxUnits = 999_999_999_999_999 // what a ledger counts exactly
)

// change is what a POST on a SKU asks for: one of set, add and state.
type change struct {
	Set   *int64
	Add   *int64
	Limit *int64 // with set, on a ledger: units a person; 0 = no limit
	State string // of a ledger

	key string // Idempotency-Key, with add
}

const changeForm = `the body must be {"set": N}, {"add": N}, or for a ledger {"set": N, "limit": M} or {"state": ` +
	`"on", "paused", "ended" or "frozen"}`

// changeOf reads a change.
func changeOf(w http.ResponseWriter, r *http.Request) (c change, err error) {
	if err := decode(w, r, &c); err != nil {
		return c, fmt.Errorf("%w: %s", ErrInvalid, changeForm)
	}
	asked := 0
	for _, is := range []bool{c.Set != nil, c.Add != nil, c.State != ""} {
		if is {
			asked++
		}
	}
	if asked != 1 || c.Limit != nil && c.Set == nil {
		return c, fmt.Errorf("%w: %s", ErrInvalid, changeForm)
	}
	c.key = r.Header.Get("Idempotency-Key")
	return c, nil
}

// fitsLayout rejects what a shop's own key cannot hold.
func (c *change) fitsLayout() error {
	switch {
	case c.Limit != nil, c.State != "":
		return fmt.Errorf("%w: the shop keeps this stock, and decides its limit and state; to stop its orders: "+
			"sluice stock set SKU 0", ErrInvalid)
	case c.key != "":
		return fmt.Errorf("%w: the shop's own key does not remember an Idempotency-Key; read the stock before you repeat",
			ErrInvalid)
	}
	return nil
}

// fitsLedger rejects what no ledger could hold.
func (c *change) fitsLedger() error {
	switch {
	case c.Set != nil && (*c.Set < 0 || *c.Set > maxUnits):
		return fmt.Errorf("%w: a total is 0 to %d, not %d", ErrInvalid, maxUnits, *c.Set)
	case c.Limit != nil && (*c.Limit < 0 || *c.Limit > maxUnits):
		return fmt.Errorf("%w: limit is 0, for none, or the units that one person may have, not %d", ErrInvalid, *c.Limit)
	case c.Add != nil && (*c.Add == 0 || *c.Add < -maxUnits || *c.Add > maxUnits):
		return fmt.Errorf("%w: what is added is 1 to %d, or as many less, not %d", ErrInvalid, maxUnits, *c.Add)
	case c.State != "" && !slices.Contains([]string{"on", "paused", "ended", frozen}, c.State):
		return fmt.Errorf(`%w: a state is "on", "paused", "ended" or "frozen", not %.20q`, ErrInvalid, c.State)
	case c.key != "" && c.Add == nil:
		return fmt.Errorf("%w: only {\"add\": N} needs an Idempotency-Key; all others may be repeated as they are",
			ErrInvalid)
	case c.key != "" && !visible(c.key, maxKey):
		return fmt.Errorf("%w: an Idempotency-Key has 1 to %d visible ASCII characters", ErrInvalid, maxKey)
	}
	return nil
}

// String is the change as the log tells it.
func (c *change) String() string {
	switch {
	case c.Set != nil && c.Limit != nil:
		return fmt.Sprintf("set %d limit %d", *c.Set, *c.Limit)
	case c.Set != nil:
		return fmt.Sprintf("set %d", *c.Set)
	case c.Add != nil:
		return fmt.Sprintf("add %d", *c.Add)
	}
	return "state " + c.State
}

// decode reads one JSON object of known fields and nothing behind it.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	return decodeLarge(w, r, maxBody, into)
}

// decodeLarge is decode of a body of at most so many bytes.
func decodeLarge(w http.ResponseWriter, r *http.Request, most int64, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// limitOf reads ?limit=.
func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return usualList, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxList {
		return 0, fmt.Errorf("limit %.20q: %w: it is 1 to %d", text, ErrInvalid, maxList)
	}
	return n, nil
}

// visible reports 1 to most visible ASCII characters.
func visible(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= most
}
