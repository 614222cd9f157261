// Package stockstatus is what shoppers may ask about the stock: the question, what is known of a SKU, and the answer.
package stockstatus

import (
	"bytes"
	"net/url"
	"strconv"

	"sluice/internal/octets"
	"sluice/proxy/param"
)

// Status is one SKU as shoppers may see it.
type Status struct {
	Phase  Phase
	Free   int64 // units; below 0 = not known
	Opens  int64 // Unix ms, of NotStarted; 0 = not known
	Closes int64 // Unix ms; 0 = never
}

// Phase is the sale state of a SKU.
type Phase uint8

// The phases, in the order in which most SKUs pass through them.
const (
	Unknown    Phase = iota // the SKU, or its stock at the moment, is not known
	NotStarted              // it opens later
	InStock
	Paused  // by an operator or the shop
	SoldOut // no unit is free
	Ended   // it is not sold any more
	numPhases
)

// String is the phase as clients read it.
func (p Phase) String() string {
	return [numPhases]string{"unknown", "waiting", "open", "paused", "sold_out", "ended"}[p]
}

// Options say how much of the stock shoppers are told.
type Options struct {
	Exact bool  // the number
	Few   int64 // so many units or less are few; below 0 = nothing is said of what is left
}

// Path is where a page asks what is left: GET /.sluice/stock/{sku}, and of several GET /.sluice/stock?sku=a&sku=b.
const Path = "/.sluice/stock"

// MaxQuery is how many SKUs one question may name.
const MaxQuery = 20

// IsPath reports whether a path asks for the stock.
func IsPath(path []byte) bool {
	rest, ok := bytes.CutPrefix(path, []byte(Path))
	return ok && (len(rest) == 0 || rest[0] == '/')
}

// Query reads which SKUs are asked for; nil = the query is not valid.
func Query(path, query []byte) (skus [][]byte, one bool) {
	if name, ok := bytes.CutPrefix(path, []byte(Path+"/")); ok {
		sku, err := url.PathUnescape(string(name))
		if err != nil || !param.ValidSKU([]byte(sku)) {
			return nil, false
		}
		return [][]byte{[]byte(sku)}, true
	}
	asked, err := url.ParseQuery(string(query))
	if err != nil || len(asked["sku"]) > MaxQuery {
		return nil, false
	}
	for _, sku := range asked["sku"] {
		if !param.ValidSKU([]byte(sku)) {
			return nil, false
		}
		skus = append(skus, []byte(sku))
	}
	return skus, false
}

// Append writes the fields of one SKU.
func (o Options) Append(dst, sku []byte, s Status, at int64) []byte {
	dst = append(appendSKU(append(dst, `"sku":`...), sku), `,"phase":"`...)
	dst = append(append(dst, s.Phase.String()...), '"')
	if left := o.left(s); left != "" {
		dst = append(append(append(dst, `,"left":"`...), left...), '"')
		if o.Exact {
			dst = strconv.AppendInt(append(dst, `,"free":`...), max(s.Free, 0), 10)
		}
	}
	if s.Phase == NotStarted && s.Opens != 0 {
		dst = strconv.AppendInt(append(dst, `,"opens_at_ms":`...), s.Opens, 10)
		dst = strconv.AppendInt(append(dst, `,"opens_in_ms":`...), max(s.Opens-at, 0), 10)
	}
	if s.Closes != 0 && s.Phase != Ended {
		dst = strconv.AppendInt(append(dst, `,"closes_at_ms":`...), s.Closes, 10)
	}
	return dst
}

// left is how much is left, in a word; "" = it is not said.
func (o Options) left(s Status) string {
	switch {
	case o.Few < 0 && !o.Exact:
		return ""
	case s.Phase == SoldOut, s.Phase == Ended && s.Free == 0:
		return "none"
	case s.Phase != InStock || s.Free < 0:
		return ""
	case s.Free <= o.Few:
		return "few"
	}
	return "many"
}

// appendSKU writes a SKU as JSON. param.ValidSKU admits only two bytes that JSON has to escape.
func appendSKU(dst, sku []byte) []byte {
	dst = append(dst, '"')
	for _, c := range sku {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// Tag is what an answer says, but for the time.
type Tag struct{ sum octets.Fingerprint }

// NewTag is the tag of an answer about no SKU.
func NewTag() Tag { return Tag{octets.NewFingerprint()} }

// Add takes in what is said of one SKU.
func (t *Tag) Add(o Options, sku []byte, s Status) {
	t.sum.AddString(string(sku))
	t.sum.AddString(o.left(s))
	t.sum.AddNumber(int64(s.Phase))
	t.sum.AddNumber(s.Opens)
	t.sum.AddNumber(s.Closes)
	if o.Exact && o.left(s) != "" {
		t.sum.AddNumber(s.Free)
	}
}

// String is a weak ETag (RFC 9110, section 8.8.3): the time in the body differs each time.
func (t Tag) String() string { return `W/"` + strconv.FormatUint(uint64(t.sum), 36) + `"` }
