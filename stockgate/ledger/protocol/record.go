package protocol

import (
	"fmt"
	"strconv"
	"strings"
)

// DecodeRecord reads a record as it lies in Redis: state|quantity|time|user, the user last since it may hold any byte.
// R, refunded, is X to everybody else: only whether a further refund was done already hangs on it.
func DecodeRecord(serial, text string) (Record, error) {
	parts := strings.SplitN(text, "|", 4)
	if len(parts) != 4 || len(parts[0]) != 1 || !strings.Contains("HCXR", parts[0]) {
		return Record{}, fmt.Errorf("the record of %q cannot be read", serial)
	}
	quantity, err1 := Digits(parts[1])
	deadline, err2 := Digits(parts[2])
	if err1 != nil || err2 != nil {
		return Record{}, fmt.Errorf("the record of %q cannot be read", serial)
	}
	status := parts[0][0]
	if status == StatusRefunded {
		status = StatusReleased
	}
	return Record{Serial: serial, User: parts[3], Quantity: quantity, Status: status, Deadline: deadline}, nil
}

// Digits reads 1 to 15 decimal digits and nothing else.
func Digits(s string) (int64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || len(s) > 15 {
		return 0, fmt.Errorf("%.32q is not a number", s)
	}
	return int64(n), nil
}
