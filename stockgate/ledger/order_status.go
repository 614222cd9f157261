package ledger

import (
	"cmp"
	"fmt"
)

// Status is what an order's units are. Its byte is that of records in Redis and of rows in SQL; users read words.
type Status byte

// What a record can be. A serial without one is none.
const (
	StatusNone     Status = 0
	StatusHeld     Status = 'H'
	StatusSold     Status = 'C'
	StatusReleased Status = 'X'
	StatusRefunded Status = 'R'
)

// Statuses are the words for those of an order that is known.
var Statuses = map[Status]string{StatusHeld: "held", StatusSold: "sold", StatusReleased: "released",
	StatusRefunded: "refunded"}

func (s Status) String() string { return cmp.Or(Statuses[s], "none") }

// ParseStatus reads the word for a status.
func ParseStatus(word string) (Status, error) {
	for s, its := range Statuses {
		if its == word {
			return s, nil
		}
	}
	return StatusNone, fmt.Errorf("%.20q is no state of an order: it is held, sold, released or refunded", word)
}

// Final reports whether the units went back: no recovery turns that back.
func (s Status) Final() bool { return s == StatusReleased || s == StatusRefunded }

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Status) UnmarshalText(word []byte) (err error) {
	*s, err = ParseStatus(string(word))
	return err
}
