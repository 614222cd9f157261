package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// JWTOptions say which tokens are believed.
type JWTOptions struct {
	Algorithm string        // "HS256" "RS256" "EdDSA": the one that is accepted, whatever a token says
	Key       string        // HS256: the secret; else a public key in PEM, or a JWKS (RFC 7517)
	Issuer    string        // what iss must be; "" = anything
	Audience  string        // what aud must hold; "" = anything
	Leeway    time.Duration // of clocks, for exp and nbf
	Claims    []string      // that are asked for; others are not kept
	Remember  int           // tokens that are not verified again, about; 0 = none
}

// JWT verifies JSON web tokens (RFC 7519, RFC 8725). They must expire. It is safe for concurrent use.
type JWT struct {
	keys   keys
	rules  []jwt.ParserOption
	claims []string
	leeway time.Duration
	memory *memory
}

const (
	maxToken = 8 << 10 // bytes
	maxClaim = 256     // bytes
)

// NewJWT reads the keys.
func NewJWT(o JWTOptions) (*JWT, error) {
	k, err := readKeys(o.Algorithm, o.Key)
	if err != nil {
		return nil, err
	}
	j := &JWT{keys: k, claims: o.Claims, leeway: o.Leeway, memory: newMemory(o.Remember)}
	j.rules = []jwt.ParserOption{
		jwt.WithValidMethods([]string{o.Algorithm}), jwt.WithExpirationRequired(), jwt.WithLeeway(o.Leeway),
		jwt.WithJSONNumber(), jwt.WithStrictDecoding(),
	}
	if o.Issuer != "" {
		j.rules = append(j.rules, jwt.WithIssuer(o.Issuer))
	}
	if o.Audience != "" {
		j.rules = append(j.rules, jwt.WithAudience(o.Audience))
	}
	return j, nil
}

// Claim returns a claim of a token that is good at now: text, or a whole number in digits; false when the token cannot be
// believed or has no such claim. "Bearer " before the token is skipped.
func (j *JWT) Claim(token []byte, name string, now time.Time) (value []byte, ok bool) {
	token = bytes.TrimSpace(token)
	if len(token) > len(bearer) && bytes.EqualFold(token[:len(bearer)], bearer) {
		token = bytes.TrimSpace(token[len(bearer):])
	}
	if len(token) == 0 || len(token) > maxToken {
		return nil, false
	}
	key := digest(sha256.Sum256(token))
	claims := j.memory.find(&key, now.Unix())
	if claims == nil {
		if claims = j.verify(string(token), &key, now); claims == nil {
			return nil, false
		}
	}
	value, ok = claims[name]
	return value, ok
}

var bearer = []byte("Bearer ")

// verify checks the signature and the times of a token that is not remembered.
func (j *JWT) verify(token string, key *digest, now time.Time) map[string][]byte {
	found := jwt.MapClaims{}
	rules := append(j.rules[:len(j.rules):len(j.rules)], jwt.WithTimeFunc(func() time.Time { return now }))
	if _, err := jwt.NewParser(rules...).ParseWithClaims(token, found, j.keys.of); err != nil {
		return nil
	}
	expires, err := found.GetExpirationTime()
	if err != nil || expires == nil {
		return nil
	}
	claims := map[string][]byte{}
	for _, name := range j.claims {
		if value := text(found[name]); value != "" {
			claims[name] = []byte(value)
		}
	}
	j.memory.keep(key, claims, expires.Add(j.leeway).Unix())
	return claims
}

// text is a claim that can be a user: text, or a whole number as it stands in the token; "" = it is neither.
func text(claim any) string {
	switch v := claim.(type) {
	case string:
		if len(v) <= maxClaim {
			return v
		}
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

// of finds the key of a token. What a token says of its key only chooses among those of the configuration: no address
// (jku, x5u) and no key (jwk, x5c) of its own is looked at.
func (k *keys) of(t *jwt.Token) (any, error) {
	if _, has := t.Header["crit"]; has {
		return nil, errors.New("crit: nothing beyond RFC 7519 is understood") // RFC 7515, section 4.1.11
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
