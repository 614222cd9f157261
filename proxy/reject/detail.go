package reject

// Cause says what about a request its rejection is for, out of a closed list. It is the label of a metric.
type Cause uint8

// The causes. A reason that has none says all by itself.
const (
	NoCause          Cause = iota
	ProtocolRule           // a rule of HTTP/1.1; the operand is the rule
	PathNotCanonical       // servers could read the path differently, and a route that guards stock is among the readings
	MethodOverride         // a header asks to take the request for one of another method or path, which guards stock
	SKUMissing             // operand: the route's variable
	SKUInvalid
	UserMissing
	UserInvalid
	QuantityMissing
	QuantityInvalid // not a whole number from 1 to stock.reserve.per_user
	KeyInvalid      // Idempotency-Key is not 1 to 128 visible ASCII characters
	RateKeyMissing
	DuplicateKey       // operand: the name that stands twice in the place where the route looks
	BodyNotJSON        // Content-Type says JSON and the body is none, or the route wants JSON and Content-Type is another
	BodyNotForm        // likewise, a form
	BodyCompressed     // Content-Encoding
	BodyNotUTF8        // the body, or its charset, is not UTF-8
	ContentTypeInvalid // Content-Type can be read in more than one way
	ValueInvalid       // a value is no text: not UTF-8, or JSON of another type. Operand: the variable
	UpgradeOnGate      // an order cannot leave HTTP
	QueryInvalid       // the query of one of the gate's own addresses
	NumCauses
)

// causes are the label of each cause and its text.
var causes = [NumCauses]struct{ label, text string }{
	NoCause:            {"", ""},
	ProtocolRule:       {"protocol", ""},
	PathNotCanonical:   {"path_not_canonical", "path is not canonical"},
	MethodOverride:     {"method_override", "method or path is overridden by a header"},
	SKUMissing:         {"sku_missing", "sku missing"},
	SKUInvalid:         {"sku_invalid", "sku invalid"},
	UserMissing:        {"user_missing", "user missing"},
	UserInvalid:        {"user_invalid", "user invalid"},
	QuantityMissing:    {"quantity_missing", "quantity missing"},
	QuantityInvalid:    {"quantity_invalid", "quantity invalid"},
	KeyInvalid:         {"key_invalid", "Idempotency-Key is not 1 to 128 visible ASCII characters"},
	RateKeyMissing:     {"rate_key_missing", "rate key missing"},
	DuplicateKey:       {"duplicate_key", "duplicate key"},
	BodyNotJSON:        {"body_not_json", "body is not JSON"},
	BodyNotForm:        {"body_not_form", "body is not a form"},
	BodyCompressed:     {"body_compressed", "body is compressed"},
	BodyNotUTF8:        {"body_not_utf8", "body is not UTF-8"},
	ContentTypeInvalid: {"content_type_invalid", "Content-Type is invalid"},
	ValueInvalid:       {"value_invalid", "value is not text"},
	UpgradeOnGate:      {"upgrade", "an order cannot upgrade the connection"},
	QueryInvalid:       {"query_invalid", "query is invalid"},
}

// String is the label in metrics.
func (c Cause) String() string { return causes[c].label }

// Detail is the cause of a rejection and what it is about. The zero value is none.
type Detail struct {
	Cause   Cause
	Operand string // out of the configuration or a fixed list, never what a client sent; "" = none
}

// AppendText appends the detail as clients, logs and operators read it: `user missing: $cookie_uid`.
func (d Detail) AppendText(dst []byte) []byte {
	text := causes[d.Cause].text
	dst = append(dst, text...)
	if text != "" && d.Operand != "" {
		dst = append(dst, ": "...)
	}
	return append(dst, d.Operand...)
}

// String is AppendText as a string.
func (d Detail) String() string { return string(d.AppendText(nil)) }
