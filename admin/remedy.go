package admin

import (
	"errors"
	"slices"
	"strings"

	"sluice/stockgate/redisconn"
)

// unreached are parts of messages that say that Redis was not reached, or rejected the user.
var unreached = []string{"dial tcp", "dial unix", "i/o timeout", "broken pipe", "reset by peer", "no such host",
	"WRONGPASS", "NOAUTH", "NOPERM"}

// remedy says what to do about a fault of Redis.
func remedy(fault string) string {
	if strings.Contains(fault, "WRONGTYPE") {
		return "; sluice check --online --sku SKU says what the key is"
	}
	if slices.ContainsFunc(unreached, func(part string) bool { return strings.Contains(fault, part) }) {
		return "; " + redisconn.Remedy(errors.New(fault))
	}
	return ""
}
