package ledger

import (
	"fmt"
	"strconv"
	"strings"
)

// DecodeRecord reads a record as it lies in Redis: state|quantity|time|user, the user last since it may hold any byte.
// quantity is as unitsText has it.
func DecodeRecord(serial, text string) (Record, error) {
	state, rest, _ := strings.Cut(text, "|")
	count, rest, _ := strings.Cut(rest, "|")
	until, user, ok := strings.Cut(rest, "|")
	units, cart, _ := strings.Cut(count, "/")
	status := Status((state + "|")[0])
	quantity, err1 := Digits(units)
	deadline, err2 := Digits(until)
	if !ok || len(state) != 1 || Statuses[status] == "" || err1 != nil || err2 != nil {
		return Record{}, fmt.Errorf("the record of %.130q cannot be read: %.80q", serial, text)
	}
	if strings.HasPrefix(cart, AnyCart) {
		cart = AnyCart // without the version since which the record is so
	}
	return Record{Serial: serial, User: user, Quantity: quantity, Cart: cart, Status: status, Deadline: deadline}, nil
}

// Since is the version since which a record is what it is by a word from outside: of the quantity 2/?1764000000000-17 of
// an order that was adopted, or given back while the ledger was frozen. Both are 0 where the quantity names none.
func Since(quantity string) (epoch, ver int64) {
	_, at, ok := strings.Cut(quantity, "/"+AnyCart)
	if !ok || at == "" {
		return 0, 0
	}
	e, v, _ := strings.Cut(at, "-")
	epoch, err1 := Digits(e)
	ver, err2 := Digits(v)
	if err1 != nil || err2 != nil {
		return 0, 0
	}
	return epoch, ver
}

// unitsText is a quantity as records and calls have it: 2, and 2/k3j5 of a line of the cart k3j5.
func unitsText(quantity int64, cart string) string {
	text := strconv.FormatInt(quantity, 10)
	if cart != "" {
		text += "/" + cart
	}
	return text
}

// Digits reads 1 to 15 decimal digits and nothing else.
func Digits(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > 15 {
		return 0, fmt.Errorf("%.32q is not a number", s)
	}
	return int64(n), nil
}
