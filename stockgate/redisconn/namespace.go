package redisconn

import "strings"

// Name is the name of a shop, as the configuration has it. Every key, channel and stream of Sluice in Redis begins with
// it, so that shops on one Redis share nothing: two names never have a key in common, and one name has a key for each
// SKU and part. A name has no colon and no brace, and a SKU has no brace.
type Name string

// Valid reports whether keys of this name belong to it alone. The configuration is stricter.
func (n Name) Valid() bool { return n != "" && !strings.ContainsAny(string(n), ":{}") }

// Key is the key of what belongs to no SKU. part begins with a letter.
func (n Name) Key(part string) string { return "sluice:" + string(n) + ":" + part }

// SKUKey is the key of what belongs to a SKU. In a cluster all keys of a SKU are in one slot.
func (n Name) SKUKey(sku, part string) string {
	return "sluice:" + string(n) + ":{" + sku + "}:" + part
}

// Tagged is the key of what belongs to no SKU, and shares a slot with what has the same tag. kind begins with a letter.
func (n Name) Tagged(kind, tag, part string) string { return n.Key(kind + ":{" + tag + "}:" + part) }

// ClaimKey is the key of the claim; see Claim.
func (n Name) ClaimKey() string { return n.Key("claim") }
