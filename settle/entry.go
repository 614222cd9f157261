package settle

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/stockgate/ledger"
)

// Entry is one change of a ledger, as its stream has it (docs/metrics.md).
type Entry struct {
	Position
	Numbers
	At      int64 // Unix ms; 0 = not known
	Born    int64 // the ledger was archived, and begins anew with this epoch; 0 = it goes on
	Records []Record
	Fault   error // the entry cannot be read; Position is right anyway
	fields  reply // names and values
}

// decode reads fields from r, a number of words, and keeps their text. A fault of r itself is not one of the entry.
func (e *Entry) decode(r *reply, words int) {
	begin := r.left
	fault := func(err error) { // the first one is told: a damaged entry may have hundreds
		if e.Fault == nil {
			e.Fault = err
		}
	}
	number := func(name, text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			fault(fmt.Errorf("%s %.40q is not a number", name, text))
		}
		return n
	}
	seen, op := 0, ""
	for i := 0; i+1 < words; i += 2 {
		name, value := r.word(), r.word()
		switch name {
		case "op":
			op = value
		case "total":
			e.Total, seen = number(name, value), seen+1
		case "held":
			e.Held, seen = number(name, value), seen+1
		case "sold":
			e.Sold, seen = number(name, value), seen+1
		case "state":
			e.State, seen = value, seen+1
		case "at":
			e.At = number(name, value)
		case "born":
			e.Born = number(name, value)
		}
		serial, ok := strings.CutPrefix(name, "r:")
		if !ok {
			continue
		}
		record, err := parseRecord(serial, value)
		if err != nil {
			fault(err)
			continue
		}
		if e.Records == nil {
			e.Records = make([]Record, 0, (words-i)/2) // they are the last fields
		}
		record.Position = e.Position
		e.Records = append(e.Records, record)
	}
	if words%2 != 0 {
		r.word()
		fault(errors.New("a field has no value"))
	}
	if seen != 4 {
		fault(errors.New("total, held, sold or state is missing"))
	}
	for i := range e.Records {
		r := &e.Records[i]
		r.At = e.At
		if op == "reserve" && r.Status == ledger.StatusHeld {
			r.Anew = e.Position
		}
	}
	if e.Fault != nil {
		e.Records = nil
	}
	e.fields.left = begin[:len(begin)-len(r.left)]
}

// parseRecord reads a record as it lies in Redis.
func parseRecord(serial, text string) (Record, error) {
	is, err := ledger.DecodeRecord(serial, text)
	r := Record{Serial: serial, User: is.User, Quantity: is.Quantity, Status: is.Status}
	if r.Status == ledger.StatusSold {
		count, _, _ := strings.Cut(strings.TrimPrefix(text, "C|"), "|")
		r.Anew.Epoch, r.Anew.Ver = ledger.Since(count) // it was adopted
	}
	return r, err
}

// text is what parseRecord reads.
func (r Record) text() string {
	since := ""
	if r.Status == ledger.StatusSold && r.Anew != (Position{}) {
		since = "/" + ledger.AnyCart + r.Anew.String()
	}
	return fmt.Sprintf("%c|%d%s|0|%s", r.Status, r.Quantity, since, r.User)
}

// numbersOf are the fields of an entry before its records.
func numbersOf(n Numbers, at int64) []string {
	return []string{
		"total", strconv.FormatInt(n.Total, 10), "held", strconv.FormatInt(n.Held, 10),
		"sold", strconv.FormatInt(n.Sold, 10), "state", n.State, "at", strconv.FormatInt(at, 10),
	}
}

func parsePosition(id string) (Position, error) {
	epoch, ver, _ := strings.Cut(id, "-")
	e, err1 := strconv.ParseInt(epoch, 10, 64)
	v, err2 := strconv.ParseInt(ver, 10, 64)
	return Position{e, v}, errors.Join(err1, err2)
}

// Fingerprint is made of the id and of all fields with their lengths. Of a batch only the first and the last entry need
// it, so it is not kept.
func (e *Entry) Fingerprint() (f Fingerprint) {
	var text []byte
	add := func(word string) {
		text = append(binary.BigEndian.AppendUint32(text, uint32(len(word))), word...)
	}
	add(e.Position.String())
	for _, word := range e.fields.words() {
		add(word)
	}
	sum := sha256.Sum256(text)
	copy(f[:], sum[:])
	return f
}

func quoted(words []string) string {
	parts := make([]string, len(words))
	for i, word := range words {
		parts[i] = strconv.QuoteToASCII(word)
	}
	return strings.Join(parts, " ")
}

// unquoted is the inverse of quoted.
func unquoted(text string) (words []string, err error) {
	for text != "" {
		prefix, err := strconv.QuotedPrefix(text)
		if err != nil {
			return nil, err
		}
		word, err := strconv.Unquote(prefix)
		if err != nil {
			return nil, err
		}
		words, text = append(words, word), strings.TrimPrefix(text[len(prefix):], " ")
	}
	return words, nil
}

// fold returns the last record of each serial, sorted by serial, so that all settlers lock rows in one order.
func fold(entries []Entry) []Record {
	last := make(map[string]Record, len(entries))
	for i := range entries {
		for _, r := range entries[i].Records {
			last[r.Serial] = r.after(last[r.Serial])
		}
	}
	return sorted(last)
}

// after is r, which follows the record of before under its serial.
func (r Record) after(before Record) Record {
	if r.Anew.Before(before.Anew) {
		r.Anew = before.Anew
	}
	return r
}

func sorted(bySerial map[string]Record) []Record {
	records := make([]Record, 0, len(bySerial))
	for _, serial := range slices.Sorted(maps.Keys(bySerial)) {
		records = append(records, bySerial[serial])
	}
	return records
}
