package reject

// Cause says which part of a request its rejection is about, out of a closed list. It is the label of a metric.
type Cause uint8

// The causes. Most reasons need none.
const (
	NoCause            Cause = iota
	ProtocolRule             // a rule of HTTP/1.1 is broken; operand: the rule
	PathNotCanonical         // a server could read the path as one of a route that guards stock
	MethodOverride           // a header replaces the method or path by one that guards stock
	SKUMissing               // operand: the route's variable
	SKUInvalid               // operand: the route's variable
	UserMissing              // operand: the route's variable
	UserInvalid              // operand: the route's variable
	TokenMissing             // no token where auth.jwt_from looks; operand of this and the next ones: the variable
	TokenTooLong             // a token of more than 8 KiB
	TokenMalformed           // not a JSON web token
	TokenKey                 // its kid names no key of the file, its alg is unknown, or it needs an extension
	TokenSignature           // signed by another key or algorithm, or not at all; of a cookie, too
	TokenWithoutExp          // no exp, or not a number
	TokenExpired             // by more than the leeway
	TokenNotYet              // nbf lies further ahead than the leeway
	TokenIssuer              // iss is not auth.jwt_issuer
	TokenAudience            // aud does not have auth.jwt_audience
	ClaimMissing             // the token is valid, and has no such claim
	PassMissing              // an order at a waiting room has no pass
	PassExpired              // it had one
	PassWrong                // its pass is of another user, room, sale or key
	ValueMissing             // operand: the variable of a condition that the route requires
	ConditionUnmet           // operand: the condition
	QuantityMissing          // operand: the route's variable
	QuantityInvalid          // not a whole number from 1 on; operand: the route's variable
	QuantityOverMax          // a whole number above it; operand: the bound
	TooManyLines             // an order over several SKUs has more than 16; operand: the route's variable
	KeyInvalid               // Idempotency-Key is not 1 to 128 visible ASCII characters
	DuplicateKey             // a name occurs twice in the source that the route reads; operand: the name
	NameSpelling             // a name occurs as that of a list or an object alone; operand: the name
	PlacesDiffer             // query and body have different values; operand: the variable
	BodyNotJSON              // the body is not JSON although Content-Type says so
	TypeNotJSON              // the route requires a JSON body, and Content-Type says another type or none
	BodyNotForm              // the body is not a form although Content-Type says so or the route requires it
	BodyCompressed           // the body has a Content-Encoding
	BodyNotUTF8              // the body, or its charset, is not UTF-8
	ContentTypeInvalid       // Content-Type can be read in more than one way
	ValueInvalid             // not UTF-8, an incomplete escape, or read differently by servers; operand: the variable
	UpgradeOnGate            // an order asks for another protocol
	QueryInvalid             // the query of an internal endpoint is invalid
	BodyMemory               // request bodies have used up the memory for a body of this size
	CrossOrigin              // a page of another origin asks for what its visitor has not asked for
	UntrustedPeer            // who asks is not in decide.trusted_proxies
	QuestionIncomplete       // another proxy asks about a request, and does not say all of it; operand: the field
	BodyNotSeen              // another proxy asks about a request whose order may stand in the body
	FieldImitated            // another proxy asks about a request with a field that servers take for one of a proxy
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
	TokenMissing:       {"token_missing", "token missing where auth.jwt_from looks"},
	TokenTooLong:       {"token_too_long", "token has more than 8 KiB"},
	TokenMalformed:     {"token_malformed", "not a JSON web token"},
	TokenKey:           {"token_key", "token names no known key or algorithm"},
	TokenSignature:     {"token_signature", "signature is wrong"},
	TokenWithoutExp:    {"token_without_exp", "token has no exp"},
	TokenExpired:       {"token_expired", "token has expired"},
	TokenNotYet:        {"token_not_yet", "token is not valid yet"},
	TokenIssuer:        {"token_issuer", "token is of another issuer"},
	TokenAudience:      {"token_audience", "token is for another audience"},
	ClaimMissing:       {"claim_missing", "token lacks the claim"},
	PassMissing:        {"pass_missing", "pass missing"},
	PassExpired:        {"pass_expired", "pass has expired"},
	PassWrong:          {"pass_wrong", "pass is of another user, room, sale or key"},
	ValueMissing:       {"value_missing", "required value missing"},
	ConditionUnmet:     {"condition_unmet", "condition not met"},
	QuantityMissing:    {"quantity_missing", "quantity missing"},
	QuantityInvalid:    {"quantity_invalid", "quantity invalid"},
	QuantityOverMax:    {"quantity_over_max", "quantity is over stock.reserve.max_per_user"},
	TooManyLines:       {"too_many_lines", "more than 16 lines"},
	KeyInvalid:         {"key_invalid", "Idempotency-Key is not 1 to 128 visible ASCII characters"},
	DuplicateKey:       {"duplicate_key", "duplicate key"},
	NameSpelling:       {"name_spelling", "name is spelled in another way"},
	PlacesDiffer:       {"places_differ", "query and body differ"},
	BodyNotJSON:        {"body_not_json", "body is not JSON"},
	TypeNotJSON:        {"type_not_json", "Content-Type is not application/json"},
	BodyNotForm:        {"body_not_form", "body is not a form"},
	BodyCompressed:     {"body_compressed", "body is compressed"},
	BodyNotUTF8:        {"body_not_utf8", "body is not UTF-8"},
	ContentTypeInvalid: {"content_type_invalid", "Content-Type is invalid"},
	ValueInvalid:       {"value_invalid", "value is invalid"},
	UpgradeOnGate:      {"upgrade", "an order cannot upgrade the connection"},
	QueryInvalid:       {"query_invalid", "query is invalid"},
	BodyMemory:         {"body_memory", "no memory is left for a body of this size"},
	CrossOrigin:        {"cross_origin", "a page of another origin asks, or a proxy has changed Host"},
	UntrustedPeer:      {"untrusted_peer", "the peer is not in trusted_proxies of this listener"},
	QuestionIncomplete: {"question_incomplete", "the question needs this field once"},
	BodyNotSeen:        {"body_not_seen", "the body may hold the order, and is not sent here"},
	FieldImitated:      {"field_imitated", "a field's name could be read as that of a proxy's field"},
}

// String is the label in metrics.
func (c Cause) String() string { return causes[c].label }

// Detail is the cause of a rejection and what it is about. The zero value is none.
type Detail struct {
	Cause   Cause
	Operand string // from the configuration or a fixed list, never from the request; "" = none
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

// isEmpty reports a detail without a text.
func (d Detail) isEmpty() bool { return causes[d.Cause].text == "" && d.Operand == "" }
