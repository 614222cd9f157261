package proxy

import (
	"bytes"
	"strconv"

	"sluice/proxy/param"
)

// JSONValue is a place in a JSON body, like "data.code", and what may stand there, as JSON: strings, numbers, booleans.
type JSONValue struct {
	Keys   []string
	Values []string
}

// comparison is what a body holds at the place of a JSONValue.
type comparison uint8

const (
	nothing   comparison = iota // that can be compared: no JSON, no value, null, or a value of another type
	another                     // a value of the type of one of the values, and none of them
	oneOfThem                   // one of the values
)

// compare compares what body holds with the values: strings as text, numbers as numbers, without rounding.
func (j *JSONValue) compare(body []byte) comparison {
	found := param.JSONText(body, j.Keys)
	if found == nil {
		return nothing
	}
	var room [64]byte
	plain, kind := canonicalJSON(room[:0], found)
	result := nothing
	for _, v := range j.Values {
		var wanted [64]byte
		switch want, k := canonicalJSON(wanted[:0], []byte(v)); {
		case k != kind || kind == otherKind:
		case bytes.Equal(want, plain):
			return oneOfThem
		default:
			result = another
		}
	}
	return result
}

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	otherKind jsonKind = iota // null, an object or an array; a string with half a surrogate pair, which readers differ in
	textKind
	numberKind
	boolKind
)

// canonicalJSON appends the one spelling of a valid JSON value to dst.
func canonicalJSON(dst, value []byte) ([]byte, jsonKind) {
	switch value[0] {
	case '"':
		text, whole := param.AppendJSONString(dst, value[1:len(value)-1])
		if !whole {
			return dst, otherKind
		}
		return text, textKind
	case 't', 'f':
		return append(dst, value...), boolKind
	case 'n', '{', '[':
		return dst, otherKind
	}
	return appendJSONNumber(dst, value), numberKind
}

// appendJSONNumber appends a JSON number as its digits without zeros at either end, and the power of ten of the first
// one: 200, 200.0 and 2e2 are all "2e2".
func appendJSONNumber(dst, number []byte) []byte {
	begin := len(dst)
	if number[0] == '-' {
		dst, number = append(dst, '-'), number[1:]
	}
	mantissa, power := number, []byte(nil)
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		mantissa, power = number[:i], number[i+1:]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	start := len(dst)
	dst = append(append(dst, whole...), fraction...)
	digits := bytes.TrimLeft(dst[start:], "0")
	first := len(whole) - 1 - (len(dst) - start - len(digits))
	digits = bytes.TrimRight(digits, "0")
	if len(digits) == 0 { // -0 is 0
		return append(dst[:begin], '0')
	}
	dst = append(append(dst[:start], digits...), 'e')
	n, err := strconv.ParseInt(string(power), 10, 32)
	if err != nil && len(power) > 0 { // no value in a file is so large or so small
		return append(dst, power...)
	}
	return strconv.AppendInt(dst, int64(first)+n, 10)
}
