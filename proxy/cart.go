package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"slices"
	"strconv"

	"sluice/proxy/param"
	"sluice/proxy/reject"
	"sluice/stockgate/ledger"
)

// maxCartLines is how many elements the array of an order may have.
const maxCartLines = 16

// findCart finds the lines of an order by two lists of one array. Elements of one SKU are one line with the sum of
// their units, which is at most max. Lines come in the order of their SKUs: all instances reserve them in the same
// order.
func findCart(sku, quantity *param.Variable, s *param.Source, max int64) ([]ledger.Line, param.Fault) {
	var all [maxCartLines]ledger.Line
	n, bad := 0, param.Fault{}
	fault := sku.Each(s, func(i int, value []byte) bool {
		switch {
		case i == maxCartLines:
			bad = lineFault(reject.TooManyLines, sku)
		case len(value) == 0:
			bad = lineFault(reject.SKUMissing, sku)
		case !param.ValidSKU(value):
			bad = lineFault(reject.SKUInvalid, sku)
		default:
			all[i].SKU, n = value, i+1
			return true
		}
		return false
	})
	if fault.Reason != reject.Admitted || bad.Reason != reject.Admitted {
		return nil, firstFault(fault, bad)
	}
	if n == 0 {
		return nil, lineFault(reject.SKUMissing, sku)
	}
	fault = quantity.Each(s, func(i int, value []byte) bool {
		var ok bool
		if len(value) == 0 {
			bad = lineFault(reject.QuantityMissing, quantity)
		} else if all[i].Quantity, ok = param.ParseQuantity(value, max); !ok {
			bad = quantityFault(value, quantity, max)
		}
		return bad.Reason == reject.Admitted
	})
	if fault.Reason != reject.Admitted || bad.Reason != reject.Admitted {
		return nil, firstFault(fault, bad)
	}
	return mergeLines(all[:n], max)
}

// mergeLines sorts lines, and sums those of one SKU up. So few are inserted one by one, as slices.SortFunc does it.
func mergeLines(lines []ledger.Line, max int64) (merged []ledger.Line, fault param.Fault) {
	for i := range lines {
		for ; i > 0 && bytes.Compare(lines[i].SKU, lines[i-1].SKU) < 0; i-- {
			lines[i], lines[i-1] = lines[i-1], lines[i]
		}
	}
	for _, l := range lines {
		if n := len(merged); n > 0 && bytes.Equal(merged[n-1].SKU, l.SKU) {
			l.Quantity += merged[n-1].Quantity
			merged = merged[:n-1]
		}
		if max > 0 && l.Quantity > max {
			return nil, overMax(max)
		}
		merged = append(merged, l)
	}
	return merged, param.Fault{}
}

func lineFault(cause reject.Cause, v *param.Variable) param.Fault {
	return param.Fault{Reason: reject.BadRequest, Detail: reject.Detail{Cause: cause, Operand: v.String()}}
}

func firstFault(a, b param.Fault) param.Fault {
	if a.Reason != reject.Admitted {
		return a
	}
	return b
}

// appendCartText appends lines as the upstream is told them, a query string: 1001=2&1002=1.
func appendCartText(dst []byte, lines []ledger.Line) []byte {
	for i, l := range lines {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(append(dst, url.QueryEscape(string(l.SKU))...), '=')
		dst = strconv.AppendInt(dst, l.Quantity, 10)
	}
	return dst
}

// cartDigest tells this cart from every other one, in 16 letters and digits; "" of one line.
func cartDigest(lines []ledger.Line) string {
	if len(lines) < 2 {
		return ""
	}
	sum := sha256.Sum256(appendCartText(nil, lines))
	return base32.StdEncoding.EncodeToString(sum[:10])
}

// lineStates are those of a line. Each outweighs what follows it in the state of the cart: while a line is held the
// cart is undecided; the upstream has every cart of which a line is sold; where no line is, the cart came to
// nothing.
var lineStates = []ledger.Status{ledger.StatusHeld, ledger.StatusSold, ledger.StatusRefunded,
	ledger.StatusReleased, ledger.StatusNone}

// outweighs reports whether the state of a line says more of its cart than the state of another one.
func outweighs(state, other ledger.Status) bool {
	return slices.Index(lineStates, state) < slices.Index(lineStates, other)
}

// unitsOf are those of all lines.
func unitsOf(lines []ledger.Line) (n int64) {
	for _, l := range lines {
		n += l.Quantity
	}
	return n
}
