package auth

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice/proxy/reject"
)

const secret = "0123456789abcdef0123456789abcdef"

var noon = time.Unix(1_800_000_000, 0)

// object is a header or the claims of a token.
type object = map[string]any

// pair is a key pair in the formats of key files.
type pair struct {
	private any
	public  string // PEM
	jwk     map[string]string
}

func rsaPair(t testing.TB, bits int) pair {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	e := base64.RawURLEncoding.EncodeToString([]byte{1, 0, 1})
	n := base64.RawURLEncoding.EncodeToString(k.N.Bytes())
	return pair{k, publicPEM(t, &k.PublicKey), map[string]string{"kty": "RSA", "n": n, "e": e}}
}

func edPair(t testing.TB) pair {
	t.Helper()
	public, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := base64.RawURLEncoding.EncodeToString(public)
	return pair{k, publicPEM(t, public), map[string]string{"kty": "OKP", "crv": "Ed25519", "x": x}}
}

// certificate is one of the pair's public key, in PEM.
func certificate(t testing.TB, p pair) string {
	t.Helper()
	k := p.private.(*rsa.PrivateKey)
	of := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func publicPEM(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func (p pair) named(kid string) map[string]string {
	k := map[string]string{"kid": kid, "use": "sig"}
	maps.Copy(k, p.jwk)
	return k
}

func jwks(t testing.TB, list ...map[string]string) string {
	t.Helper()
	b, err := json.Marshal(object{"keys": list})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func signed(t testing.TB, method jwt.SigningMethod, key any, header, claims object) []byte {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	maps.Copy(token.Header, header)
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(s)
}

func newTestJWT(t testing.TB, o JWTOptions) *JWT {
	t.Helper()
	o.Claims = append(o.Claims, "sub", "uid")
	j, err := newJWT(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func goodClaims() object {
	return object{"sub": "7", "exp": noon.Unix() + 60, "iss": "shop", "aud": []string{"web", "gate"}}
}

func TestJWT_AcceptsTokensOfTheConfiguredKey(t *testing.T) {
	r, e := rsaPair(t, 2048), edPair(t)
	hs, rs, ed := jwt.SigningMethodHS256, jwt.SigningMethodRS256, jwt.SigningMethodEdDSA
	set := jwks(t, e.named("b"), rsaPair(t, 2048).named("c"), r.named("a"))
	chain := certificate(t, r) + certificate(t, rsaPair(t, 2048))
	checked := JWTOptions{Algorithm: "HS256", Key: secret, Issuer: "shop", Audience: "gate", Leeway: time.Second}
	for name, c := range map[string]struct {
		o      JWTOptions
		method jwt.SigningMethod
		key    any
		header object
	}{
		"HS256":        {JWTOptions{Algorithm: "HS256", Key: secret + "\n"}, hs, []byte(secret), nil},
		"RS256":        {JWTOptions{Algorithm: "RS256", Key: r.public}, rs, r.private, object{"kid": "any"}},
		"EdDSA":        {JWTOptions{Algorithm: "EdDSA", Key: e.public}, ed, e.private, nil},
		"JWKS":         {JWTOptions{Algorithm: "RS256", Key: set}, rs, r.private, object{"kid": "a"}},
		"JWKS of one":  {JWTOptions{Algorithm: "EdDSA", Key: jwks(t, e.named("b"), r.named("a"))}, ed, e.private, nil},
		"chain":        {JWTOptions{Algorithm: "RS256", Key: chain}, rs, r.private, nil},
		"JWKS no name": {JWTOptions{Algorithm: "EdDSA", Key: jwks(t, e.jwk)}, ed, e.private, object{"kid": "x"}},
		"all checked":  {checked, hs, []byte(secret), nil},
	} {
		for _, remember := range []int{0, 100} {
			c.o.Remember = remember
			j := newTestJWT(t, c.o)
			token := signed(t, c.method, c.key, c.header, goodClaims())
			for range 2 {
				if v, fault := j.Claim(token, "sub", noon); fault != 0 || string(v) != "7" {
					t.Errorf("%s, cache of %d: %q %v", name, remember, v, fault)
				}
			}
			if v, fault := j.Claim(append([]byte("bearer  "), token...), "sub", noon); fault != 0 || string(v) != "7" {
				t.Errorf("%s after Bearer: %q %v", name, v, fault)
			}
			if _, fault := j.Claim(token, "missing", noon); fault != reject.ClaimMissing {
				t.Errorf("%s: a claim that is not there: %v", name, fault)
			}
		}
	}
}

func TestJWT_ClaimIsTextAWholeNumberOrABoolean(t *testing.T) {
	j := newTestJWT(t, JWTOptions{Algorithm: "HS256", Key: secret})
	for _, c := range []struct {
		claim any
		want  string
	}{
		{"u-1", "u-1"}, {7, "7"}, {json.Number("9007199254740993"), "9007199254740993"}, {-3, "-3"},
		{1.5, ""}, {json.Number("1e3"), ""}, {true, "true"}, {false, "false"}, {nil, ""}, {[]string{"7"}, ""}, {"", ""},
		{strings.Repeat("x", 257), ""},
	} {
		claims := goodClaims()
		claims["uid"] = c.claim
		v, fault := j.Claim(signed(t, jwt.SigningMethodHS256, []byte(secret), nil, claims), "uid", noon)
		if string(v) != c.want || (fault == 0) != (c.want != "") {
			t.Errorf("%v: %q %v, want %q", c.claim, v, fault, c.want)
		}
	}
}

// forge makes a token with any header, signed by HMAC with any key, or unsigned for an empty key.
func forge(header, claims, key string) []byte {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode([]byte(claims))
	if key == "" {
		return []byte(text + ".")
	}
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return []byte(text + "." + encode(h.Sum(nil)))
}

func TestJWT_RejectsForgedTokens(t *testing.T) {
	r, e, other := rsaPair(t, 2048), edPair(t), rsaPair(t, 2048)
	body := fmt.Sprintf(`{"sub":"7","exp":%d}`, noon.Unix()+60)
	byRSA := newTestJWT(t, JWTOptions{Algorithm: "RS256", Key: r.public, Remember: 10})
	set := jwks(t, r.named("a"), rsaPair(t, 2048).named("b"))
	bySet := newTestJWT(t, JWTOptions{Algorithm: "RS256", Key: set, Remember: 10})
	bySecret := newTestJWT(t, JWTOptions{Algorithm: "HS256", Key: secret, Remember: 10})
	byEd := newTestJWT(t, JWTOptions{Algorithm: "EdDSA", Key: e.public, Remember: 10})
	good := string(signed(t, jwt.SigningMethodRS256, r.private, nil, goodClaims()))
	parts := strings.Split(good, ".")
	rs := func(key any, header object) []byte {
		return signed(t, jwt.SigningMethodRS256, key, header, goodClaims())
	}
	long := goodClaims()
	long["x"] = strings.Repeat("x", maxTokenSize)
	otherBody := base64.RawURLEncoding.EncodeToString([]byte(body))
	for name, c := range map[string]struct {
		by    *JWT
		token []byte
		fault reject.Cause
	}{
		"none":                            {byRSA, forge(`{"alg":"none"}`, body, ""), reject.TokenKey},
		"None":                            {byRSA, forge(`{"alg":"None"}`, body, ""), reject.TokenKey},
		"none of HMAC":                    {bySecret, forge(`{"alg":"none"}`, body, ""), reject.TokenKey},
		"no algorithm":                    {bySecret, forge(`{}`, body, secret), reject.TokenKey},
		"public key as secret":            {byRSA, forge(`{"alg":"HS256"}`, body, r.public), reject.TokenKey},
		"public key as secret, trimmed":   {byRSA, forge(`{"alg":"HS256"}`, body, strings.TrimSpace(r.public)), reject.TokenKey},
		"public key as secret of Ed25519": {byEd, forge(`{"alg":"HS256"}`, body, e.public), reject.TokenKey},
		"HMAC that says RS256":            {byRSA, forge(`{"alg":"RS256"}`, body, r.public), reject.TokenSignature},
		"another HMAC":                    {bySecret, forge(`{"alg":"HS256"}`, body, secret+"x"), reject.TokenSignature},
		"empty secret":                    {bySecret, forge(`{"alg":"HS256"}`, body, "\x00"), reject.TokenSignature},
		"HS512":                           {bySecret, signed(t, jwt.SigningMethodHS512, []byte(secret), nil, goodClaims()), reject.TokenKey},
		"RS512":                           {byRSA, signed(t, jwt.SigningMethodRS512, r.private, nil, goodClaims()), reject.TokenKey},
		"PS256":                           {byRSA, signed(t, jwt.SigningMethodPS256, r.private, nil, goodClaims()), reject.TokenKey},
		"another RSA key":                 {byRSA, rs(other.private, nil), reject.TokenSignature},
		"another algorithm's key":         {byRSA, signed(t, jwt.SigningMethodEdDSA, e.private, nil, goodClaims()), reject.TokenKey},
		"unknown kid":                     {bySet, rs(r.private, object{"kid": "z"}), reject.TokenKey},
		"kid of another key":              {bySet, rs(r.private, object{"kid": "b"}), reject.TokenSignature},
		"no kid of several":               {bySet, rs(r.private, nil), reject.TokenKey},
		"kid that is a path":              {bySet, forge(`{"alg":"RS256","kid":"../../dev/null"}`, body, "\x00"), reject.TokenKey},
		"kid that is a list":              {bySet, rs(r.private, object{"kid": []string{"a"}}), reject.TokenKey},
		"kid that is SQL":                 {bySet, forge(`{"alg":"HS256","kid":"x' UNION SELECT 'k"}`, body, "k"), reject.TokenKey},
		"a key that it brings along":      {byRSA, rs(other.private, object{"jwk": other.jwk}), reject.TokenSignature},
		"an address of keys":              {byRSA, rs(other.private, object{"jku": "https://evil.example/jwks"}), reject.TokenSignature},
		"crit":                            {byRSA, rs(r.private, object{"crit": []string{"b64"}}), reject.TokenKey},
		"another body":                    {byRSA, []byte(parts[0] + "." + otherBody + "." + parts[2]), reject.TokenSignature},
		"no signature":                    {byRSA, []byte(parts[0] + "." + parts[1] + "."), reject.TokenSignature},
		"two parts":                       {byRSA, []byte(parts[0] + "." + parts[1]), reject.TokenMalformed},
		"four parts":                      {byRSA, []byte(good + ".x"), reject.TokenMalformed},
		"padding":                         {byRSA, []byte(good + "="), reject.TokenMalformed},
		"empty":                           {byRSA, nil, reject.TokenMissing},
		"Bearer alone":                    {byRSA, []byte("Bearer "), reject.TokenMalformed},
		"another scheme":                  {byRSA, []byte("Basic " + good), reject.TokenMalformed},
		"too long":                        {bySecret, signed(t, jwt.SigningMethodHS256, []byte(secret), nil, long), reject.TokenTooLong},
	} {
		for range 2 {
			if v, fault := c.by.Claim(c.token, "sub", noon); fault != c.fault {
				t.Errorf("%s: %v, want %v; claim %q", name, fault, c.fault, v)
			}
		}
	}
	if _, fault := byRSA.Claim([]byte(good), "sub", noon); fault != 0 {
		t.Error("the genuine token is rejected, so the others prove nothing")
	}
}

func TestJWT_ChecksTimesIssuerAndAudience(t *testing.T) {
	j := newTestJWT(t, JWTOptions{
		Algorithm: "HS256", Key: secret, Issuer: "shop", Audience: "gate", Leeway: 30 * time.Second, Remember: 100,
	})
	for name, c := range map[string]struct {
		change object
		at     time.Duration
		want   reject.Cause
	}{
		"now":                  {nil, 0, 0},
		"within leeway":        {nil, 89 * time.Second, 0},
		"expired":              {nil, 90 * time.Second, reject.TokenExpired},
		"no end":               {object{"exp": nil}, 0, reject.TokenWithoutExp},
		"end as text":          {object{"exp": "1900000000"}, 0, reject.TokenWithoutExp},
		"not yet":              {object{"nbf": noon.Unix() + 31}, 0, reject.TokenNotYet},
		"nbf as text":          {object{"nbf": "now"}, 0, reject.TokenMalformed},
		"no end before 2^63":   {object{"exp": json.Number("9223372036854775807")}, 0, 0},
		"no end before 10^400": {object{"exp": json.Number("1e400")}, 0, 0},
		"ended long ago":       {object{"exp": json.Number("-1e30")}, 0, reject.TokenExpired},
		"end at 0":             {object{"exp": 0}, 0, reject.TokenExpired},
		"not before 2^63":      {object{"nbf": json.Number("9223372036854775807")}, 0, reject.TokenNotYet},
		"not before 10^40":     {object{"nbf": json.Number("1e40")}, 0, reject.TokenNotYet},
		"since long ago":       {object{"nbf": json.Number("-1e40")}, 0, 0},
		"almost":               {object{"nbf": noon.Unix() + 30}, 0, 0},
		"another issuer":       {object{"iss": "evil"}, 0, reject.TokenIssuer},
		"no issuer":            {object{"iss": nil}, 0, reject.TokenIssuer},
		"another audience":     {object{"aud": "app"}, 0, reject.TokenAudience},
		"no audience":          {object{"aud": nil}, 0, reject.TokenAudience},
		"no user":              {object{"sub": nil}, 0, reject.ClaimMissing},
	} {
		claims := goodClaims()
		for name, v := range c.change {
			if delete(claims, name); v != nil {
				claims[name] = v
			}
		}
		claims["jti"] = name
		token := signed(t, jwt.SigningMethodHS256, []byte(secret), nil, claims)
		if _, fault := j.Claim(token, "sub", noon.Add(c.at)); fault != c.want {
			t.Errorf("%s: %v, want %v", name, fault, c.want)
		}
	}
}

func TestNewJWT_RejectsUnsafeKeys(t *testing.T) {
	r, e, weak := rsaPair(t, 2048), edPair(t), rsaPair(t, 1024)
	private := func(p pair) string {
		der, err := x509.MarshalPKCS8PrivateKey(p.private)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	d := r.named("a")
	d["d"] = "AQAB"
	for name, c := range map[string]struct{ algorithm, key, want string }{
		"public key as secret": {"HS256", r.public, "wants a secret"},
		"JWKS as secret":       {"HS256", jwks(t, r.jwk), "wants a secret"},
		"short secret":         {"HS256", secret[:31] + "\n", "fewer than 32 bytes"},
		"none":                 {"none", secret, "not known"},
		"ES256":                {"ES256", r.public, "not known"},
		"private key":          {"RS256", private(r), "private key"},
		"private key in JWKS":  {"RS256", jwks(t, d), "private key"},
		"weak RSA":             {"RS256", weak.public, "1024 bits"},
		"weak RSA in JWKS":     {"RS256", jwks(t, weak.named("w")), "1024 bits"},
		"another type":         {"RS256", e.public, "wants an RSA key"},
		"another type still":   {"EdDSA", r.public, "wants an Ed25519 key"},
		"no key for it":        {"EdDSA", jwks(t, r.named("a")), "no key for EdDSA"},
		"no name for two":      {"RS256", jwks(t, r.jwk, rsaPair(t, 2048).jwk), "no kid"},
		"no name for one":      {"RS256", jwks(t, r.named("a"), rsaPair(t, 2048).jwk), "no kid"},
		"two in PEM":           {"RS256", r.public + rsaPair(t, 2048).public, "several"},
		"private behind it":    {"RS256", r.public + private(r), "several"},
		"PEM behind words":     {"HS256", "Bag Attributes: none\n" + r.public, "wants a secret"},
		"two of one name":      {"RS256", jwks(t, r.named("a"), rsaPair(t, 2048).named("a")), "stands twice"},
		"not a key":            {"RS256", "hello", "neither PEM nor a JWKS"},
		"broken JWKS":          {"RS256", `{"keys":[`, "read the JWKS"},
		"broken n":             {"RS256", `{"keys":[{"kty":"RSA","n":"!","e":"AQAB"}]}`, "n is not Base64"},
		"broken e":             {"RS256", `{"keys":[{"kty":"RSA","n":"AQAB","e":"AQABAQABAQ"}]}`, "e is not an exponent"},
		"broken x":             {"EdDSA", `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQAB"}]}`, "x is not the 32 bytes"},
	} {
		_, err := newJWT(JWTOptions{Algorithm: c.algorithm, Key: c.key})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want … %s …", name, err, c.want)
		}
	}
}

func FuzzClaim(f *testing.F) {
	j, err := newJWT(JWTOptions{Algorithm: "HS256", Key: secret, Claims: []string{"sub"}, Remember: 10})
	if err != nil {
		f.Fatal(err)
	}
	good := forge(`{"alg":"HS256"}`, fmt.Sprintf(`{"sub":"7","exp":%d}`, noon.Unix()+60), secret)
	f.Add(good)
	f.Add(forge(`{"alg":"none"}`, `{"sub":"7"}`, ""))
	f.Fuzz(func(t *testing.T, token []byte) {
		v, fault := j.Claim(token, "sub", noon)
		if fault == 0 && !strings.HasSuffix(strings.TrimSpace(string(token)), string(good)) {
			t.Errorf("%q is accepted, claim %q", token, v)
		}
	})
}
