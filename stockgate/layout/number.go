package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// units reads an integer as strictly as Redis itself does for INCR: no sign but a leading minus, no leading
// zero, no space, no fraction, 64 bits. What Redis would not accept to count down must not be sold.
func units(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	digits := strings.TrimPrefix(s, "-")
	if err != nil || s[0] == '+' || digits[0] == '0' && s != "0" {
		return 0, fmt.Errorf("%.32q is not an integer", s)
	}
	return n, nil
}

// minus is a − b, held at the ends of 64 bits.
func minus(a, b int64) int64 {
	const most, least = 1<<63 - 1, -1 << 63
	switch d := a - b; {
	case b > 0 && d > a:
		return least
	case b < 0 && d < a:
		return most
	default:
		return d
	}
}
