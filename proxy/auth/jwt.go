package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice/proxy/reject"
)

// JWTOptions say which tokens are accepted.
type JWTOptions struct {
	Algorithm string        // "HS256", "RS256" or "EdDSA": the only one that is accepted, whatever a token names
	Key       string        // HS256: the secret; else a public key in PEM, or a JWKS (RFC 7517)
	Issuer    string        // required value of iss; "" = any
	Audience  string        // aud must contain it; "" = any
	Leeway    time.Duration // tolerated difference of clocks, for exp and nbf
	Claims    []string      // names that Claim may be called with; other claims are not kept
	Remember  int           // about how many verified tokens are cached; 0 = every token is verified each time
}

// JWT verifies JSON web tokens (RFC 7519, RFC 8725). A token without exp is not accepted. A cached token costs no
// allocation. It is safe for concurrent use.
type JWT struct {
	algorithm string
	keys      keys
	rules     []jwt.ParserOption
	claims    []string
	issuer    string
	leeway    time.Duration
	cache     tokenCache
}

const (
	maxTokenSize = 8 << 10 // bytes
	maxClaimSize = 256     // bytes
)

// newJWT reads the keys. A key that is weak, private or of another type than the algorithm is an error.
func newJWT(o JWTOptions) (*JWT, error) {
	k, err := readKeys(o.Algorithm, o.Key)
	if err != nil {
		return nil, err
	}
	j := &JWT{algorithm: o.Algorithm, keys: k, claims: o.Claims, issuer: o.Issuer, leeway: o.Leeway,
		cache: newTokenCache(o.Remember)}
	j.rules = []jwt.ParserOption{
		jwt.WithValidMethods([]string{o.Algorithm}), jwt.WithExpirationRequired(), jwt.WithLeeway(o.Leeway),
		jwt.WithJSONNumber(), jwt.WithStrictDecoding(), jwt.WithoutClaimsValidation(), // verify does it
	}
	if o.Issuer != "" {
		j.rules = append(j.rules, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		j.rules = append(j.rules, jwt.WithAudience(o.Audience))
	}
	return j, nil
}

// Claim returns a claim of a token that is valid at now: text, a whole number in digits, "true" or "false"; or else
// what is wrong with the token. "Bearer " before the token is skipped. The caller must not change value.
func (j *JWT) Claim(token []byte, name string, now time.Time) (value []byte, fault reject.Cause) {
	token = bytes.TrimSpace(token)
	if len(token) > len(bearer) && bytes.EqualFold(token[:len(bearer)], bearer) &&
		(token[len(bearer)] == ' ' || token[len(bearer)] == '+') { // as package param reads a space in a cookie
		token = bytes.TrimSpace(token[len(bearer)+1:])
	}
	switch {
	case len(token) == 0:
		return nil, reject.TokenMissing
	case len(token) > maxTokenSize:
		return nil, reject.TokenTooLong
	}
	key := digest(sha256.Sum256(token))
	claims := j.cache.claims(&key, now.Unix())
	if claims == nil {
		if claims, fault = j.verify(string(token), &key, now); fault != reject.NoCause {
			return nil, fault
		}
	}
	value, ok := claims[name]
	if !ok {
		return nil, reject.ClaimMissing
	}
	return value, reject.NoCause
}

var bearer = []byte("Bearer")

// verify checks the signature and the times of a token and stores its claims.
func (j *JWT) verify(token string, key *digest, now time.Time) (map[string][]byte, reject.Cause) {
	parsed := jwt.MapClaims{}
	rules := append(j.rules[:len(j.rules):len(j.rules)], jwt.WithTimeFunc(func() time.Time { return now }))
	read, err := jwt.NewParser(rules...).ParseWithClaims(token, parsed, j.keys.forToken)
	if err == nil {
		boundTimes(parsed)
		err = jwt.NewValidator(rules...).Validate(parsed)
	}
	expires, noTime := parsed.GetExpirationTime()
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid) && read.Method.Alg() != j.algorithm:
		return nil, reject.TokenKey
	case err != nil, noTime != nil, expires == nil:
		return nil, j.faultOf(err, parsed)
	}
	claims := map[string][]byte{}
	for _, name := range j.claims {
		if value := claimText(parsed[name]); value != "" {
			claims[name] = []byte(value)
		}
	}
	j.cache.store(key, claims, expires.Add(j.leeway).Unix())
	return claims, reject.NoCause
}

// boundTimes brings times that no clock reaches, such as an exp of 2^63-1, into what the library can compare: it would
// take those beyond 64 bits for long ago.
func boundTimes(claims jwt.MapClaims) {
	const most = 1 << 53 // s, in digits that a float64 keeps
	for _, name := range []string{"exp", "nbf"} {
		if n, ok := claims[name].(json.Number); ok {
			if at, _ := n.Float64(); math.Abs(at) > most { // beyond float64: infinite
				claims[name] = json.Number(strconv.FormatFloat(math.Copysign(most, at), 'f', 0, 64))
			}
		}
	}
}

// faultOf is the first check that a token fails. The signature comes first, as only then the claims are the issuer's.
func (j *JWT) faultOf(err error, claims jwt.MapClaims) reject.Cause {
	expires, _ := claims.GetExpirationTime()
	issuer, _ := claims.GetIssuer()
	switch {
	case errors.Is(err, jwt.ErrTokenMalformed):
		return reject.TokenMalformed
	case errors.Is(err, jwt.ErrTokenUnverifiable):
		return reject.TokenKey
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return reject.TokenSignature
	case expires == nil:
		return reject.TokenWithoutExp
	case errors.Is(err, jwt.ErrTokenExpired):
		return reject.TokenExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return reject.TokenNotYet
	case j.issuer != "" && issuer != j.issuer:
		return reject.TokenIssuer
	case errors.Is(err, jwt.ErrTokenInvalidAudience), errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return reject.TokenAudience
	}
	return reject.TokenMalformed
}

// claimText returns a claim as text: text, a whole number with its digits as in the token, "true" or "false". Any other
// claim is "".
func claimText(claim any) string {
	switch v := claim.(type) {
	case string:
		if len(v) <= maxClaimSize {
			return v
		}
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		for i, c := range string(v) {
			if (c < '0' || c > '9') && (c != '-' || i > 0) {
				return ""
			}
		}
		return string(v)
	}
	return ""
}

// forToken returns the key of a token. The token's kid only chooses among the configured keys: an address (jku, x5u) or
// a key (jwk, x5c) that the token brings is ignored.
func (k *keys) forToken(t *jwt.Token) (any, error) {
	if _, has := t.Header["crit"]; has {
		return nil, errors.New("crit: no extension is supported") // RFC 7515, section 4.1.11
	}
	kid, has := t.Header["kid"]
	if name, ok := kid.(string); ok && k.byName != nil {
		if key := k.byName[name]; key != nil {
			return key, nil
		}
		return nil, errors.New("kid: no such key")
	}
	if has && k.byName != nil || k.only == nil {
		return nil, errors.New("kid: names no key, and there are several")
	}
	return k.only, nil
}
