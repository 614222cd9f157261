// Package cart reads the lines of an order over several SKUs. It promises that each SKU is in one line, and that lines
// come in the order of their SKUs: all instances reserve them in the same order.
//
// It reserves nothing.
package cart

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"slices"
	"strconv"

	"sluice/proxy/param"
	"sluice/proxy/reject"
)

// MaxLines is how many elements the array of an order may have.
const MaxLines = 16

// Line is one SKU of an order, and how many units of it. The SKU belongs to the request.
type Line struct {
	SKU      []byte
	Quantity int64
}

// Append finds the lines of an order by two lists of one array, and adds them to dst, which is empty. Elements of one
// SKU are one line with the sum of their units, which is at most max.
func Append(dst []Line, sku, quantity *param.Variable, s *param.Source, max int64) ([]Line, param.Fault) {
	var all [MaxLines]Line
	n, bad := 0, param.Fault{}
	fault := sku.Each(s, func(i int, value []byte) bool {
		switch {
		case i == MaxLines:
			bad = fail(reject.TooManyLines, sku)
		case len(value) == 0:
			bad = fail(reject.SKUMissing, sku)
		case !param.ValidSKU(value):
			bad = fail(reject.SKUInvalid, sku)
		default:
			all[i].SKU, n = value, i+1
			return true
		}
		return false
	})
	if fault.Reason != reject.Admitted || bad.Reason != reject.Admitted {
		return dst, first(fault, bad)
	}
	if n == 0 {
		return dst, fail(reject.SKUMissing, sku)
	}
	fault = quantity.Each(s, func(i int, value []byte) bool {
		var ok bool
		if len(value) == 0 {
			bad = fail(reject.QuantityMissing, quantity)
		} else if all[i].Quantity, ok = param.ParseQuantity(value, max); !ok {
			bad = fail(reject.QuantityInvalid, quantity)
		}
		return bad.Reason == reject.Admitted
	})
	if fault.Reason != reject.Admitted || bad.Reason != reject.Admitted {
		return dst, first(fault, bad)
	}
	return merge(dst, all[:n], quantity, max)
}

// merge sorts lines, and sums those of one SKU up. So few are inserted one by one, as slices.SortFunc does it.
func merge(dst, lines []Line, quantity *param.Variable, max int64) ([]Line, param.Fault) {
	for i := range lines {
		for ; i > 0 && bytes.Compare(lines[i].SKU, lines[i-1].SKU) < 0; i-- {
			lines[i], lines[i-1] = lines[i-1], lines[i]
		}
	}
	for _, l := range lines {
		if n := len(dst); n > 0 && bytes.Equal(dst[n-1].SKU, l.SKU) {
			l.Quantity += dst[n-1].Quantity
			dst = dst[:n-1]
		}
		if max > 0 && l.Quantity > max {
			return dst[:0], fail(reject.QuantityInvalid, quantity)
		}
		dst = append(dst, l)
	}
	return dst, param.Fault{}
}

func fail(cause reject.Cause, v *param.Variable) param.Fault {
	return param.Fault{Reason: reject.BadRequest, Detail: reject.Detail{Cause: cause, Operand: v.String()}}
}

func first(a, b param.Fault) param.Fault {
	if a.Reason != reject.Admitted {
		return a
	}
	return b
}

// AppendText appends lines as the upstream is told them, a query string: 1001=2&1002=1.
func AppendText(dst []byte, lines []Line) []byte {
	for i, l := range lines {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(append(dst, url.QueryEscape(string(l.SKU))...), '=')
		dst = strconv.AppendInt(dst, l.Quantity, 10)
	}
	return dst
}

// Digest tells this cart from every other one, in 16 letters and digits; "" of one line.
func Digest(lines []Line) string {
	if len(lines) < 2 {
		return ""
	}
	sum := sha256.Sum256(AppendText(nil, lines))
	return base32.StdEncoding.EncodeToString(sum[:10])
}

// states are those of a line. Each outweighs what follows it in the state of the cart: while a line is held the cart is
// undecided; the upstream has every cart of which a line is confirmed; where no line is, the cart came to nothing.
var states = []string{"held", "confirmed", "refunded", "released", "none"}

// Outweighs reports whether the state of a line says more of its cart than the state of another one.
func Outweighs(state, other string) bool {
	return slices.Index(states, state) < slices.Index(states, other)
}

// Units are those of all lines.
func Units(lines []Line) (n int64) {
	for _, l := range lines {
		n += l.Quantity
	}
	return n
}
