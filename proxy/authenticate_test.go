package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/proxy/auth"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

const proofSecret = "0123456789abcdef0123456789abcdef"

// macOf is HMAC-SHA256 in hex or in Base64.
func macOf(text string, encode func([]byte) string) string {
	h := hmac.New(sha256.New, []byte(proofSecret))
	h.Write([]byte(text))
	return encode(h.Sum(nil))
}

// tokenOf is the shop's token for a user, good for an hour.
func tokenOf(user string) string {
	encode := base64.RawURLEncoding.EncodeToString
	claims := fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, user, time.Now().Add(time.Hour).Unix())
	text := encode([]byte(`{"alg":"HS256"}`)) + "." + encode(claims)
	return text + "." + macOf(text, encode)
}

func byJWT(from string) auth.VerifierOptions {
	return auth.VerifierOptions{JWT: auth.JWTOptions{Algorithm: "HS256", Key: proofSecret, Remember: 100}, From: from}
}

// enteredStock is a stock that keeps the user of the last request that it admitted.
type enteredStock struct {
	stockMap
	user string
}

func (s *enteredStock) Enter(_ int64, _, user []byte) reject.Reason {
	s.user = string(user)
	return reject.Admitted
}

func TestAuth_UserIsTheOneThatTheShopHasSigned(t *testing.T) {
	const bearer = "Authorization: Bearer "
	signedCookie := "7." + macOf("7", hex.EncodeToString)
	express := "s%3A7." + strings.NewReplacer("+", "%2B", "/", "%2F", "=", "").Replace(macOf("7",
		base64.StdEncoding.EncodeToString))
	for _, c := range []struct {
		name, user, from, header, verdict string
	}{
		{"a token", "$jwt_sub", "$http_authorization", bearer + tokenOf("7"), "200"},
		{"a token in a cookie", "$jwt_sub", "$cookie_token", "Cookie: uid=8; token=" + tokenOf("7"), "200"},
		{"one with its scheme in a cookie", "$jwt_sub", "$cookie_token", "Cookie: token=Bearer%20" + tokenOf("7"), "200"},
		{"none", "$jwt_sub", "$http_authorization", "Cookie: uid=7", "unidentified"},
		{"a forged one", "$jwt_sub", "$http_authorization", bearer + tokenOf("7") + "x", "unidentified"},
		{"a word", "$jwt_sub", "$http_authorization", bearer + "7", "unidentified"},
		{"two of them", "$jwt_sub", "$http_authorization", bearer + tokenOf("7") + "\r\n" + bearer + tokenOf("8"),
			"ambiguous"},
		{"two cookies with tokens", "$jwt_sub", "$cookie_token", "Cookie: token=" + tokenOf("7") + "; Token=" + tokenOf("8"),
			"ambiguous"},
		{"a claim that it lacks", "u-$jwt_uid", "$http_authorization", bearer + tokenOf("7"), "unidentified"},
		{"an empty user", "$jwt_sub", "$http_authorization", bearer + tokenOf(""), "unidentified"},
		{"a signed cookie", "$signed_uid", "", "Cookie: uid=" + signedCookie, "200"},
		{"one of Express", "$signed_uid", "", "Cookie: uid=" + express, "200"},
		{"an unsigned one", "$signed_uid", "", "Cookie: uid=7", "unidentified"},
		{"another user's", "$signed_uid", "", "Cookie: uid=8" + signedCookie[1:], "unidentified"},
		{"two cookies", "$signed_uid", "", "Cookie: uid=" + signedCookie + "; uid=7", "ambiguous"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, stock := &recorder{}, &enteredStock{}
			o := options(up)
			o.Stock = stock
			o.Routes = []Route{{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: route.Check,
				SKU: "$path_sku", User: c.user}}
			o.Auth = auth.VerifierOptions{CookieKey: proofSecret}
			if c.from != "" {
				o.Auth = byJWT(c.from)
			}
			addr, _ := gateway(t, o)
			resp, body := talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n"+
				"Connection: close\r\n"+c.header+"\r\n\r\n")
			if got := reasonOrStatus(resp); got != c.verdict {
				t.Errorf("%s, want %s: %s", got, c.verdict, body)
			}
			if admitted := c.verdict == "200"; (len(up.all()) == 1) != admitted || admitted && stock.user != "7" {
				t.Errorf("the upstream saw %q, the stock user %q", up.all(), stock.user)
			}
			challenged := resp.Header.Get("WWW-Authenticate") == "Bearer"
			if challenged != (resp.StatusCode == http.StatusUnauthorized) || challenged != (c.verdict == "unidentified") {
				t.Errorf("%d, WWW-Authenticate %q", resp.StatusCode, resp.Header.Get("WWW-Authenticate"))
			}
		})
	}
}

// The address is the client's, not that of a proxy which is trusted.
func TestRoute_UserMayBeTheClientsAddress(t *testing.T) {
	stock := &enteredStock{}
	ask, _, _ := trustedGateway(t, func(o *Options) {
		o.Stock = stock
		o.Routes = []Route{{Name: "order", Match: "/{sku}", Gate: route.Check, SKU: "$path_sku", User: "ip-$remote_addr"}}
	})
	if got := ask(clientIP, "POST /1001"); got != "200" || stock.user != "ip-"+clientIP {
		t.Errorf("%s, user %q", got, stock.user)
	}
}

// onePhase shows every SKU in one phase, at a time that the test sets.
type onePhase struct {
	phase StockPhase
	at    int64
}

func (s *onePhase) Status(int64, []byte) StockStatus {
	return StockStatus{Phase: s.phase, Free: -1}
}
func (s *onePhase) Time(int64) int64 { return s.at }

// tokenGateway is a gateway whose orders need a token.
func tokenGateway(t *testing.T, stock *onePhase) (addr string, up *recorder) {
	t.Helper()
	up = &recorder{}
	o := options(up)
	o.Routes = []Route{
		{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: route.Check, SKU: "$path_sku", User: "$cookie_uid",
			OrderToken: true},
		{Name: "rest", Match: "/", Gate: route.Pass},
	}
	o.Auth = auth.VerifierOptions{OrderTokenKey: proofSecret, Slot: time.Minute}
	o.Availability = stock
	addr, _ = gateway(t, o)
	return addr, up
}

// fetchToken asks for a user's token of a SKU; "" = none is given.
func fetchToken(t *testing.T, addr, sku, user string) string {
	t.Helper()
	resp, body := talk(t, addr, "GET /.sluice/stock/"+sku+"?now=0.5&token=1 HTTP/1.1\r\nHost: x\r\n"+
		"Origin: https://evil.example\r\nCookie: uid="+user+"\r\nConnection: close\r\n\r\n")
	if h := resp.Header; resp.StatusCode != 200 || h.Get("Cache-Control") != "private, no-store" || h.Get("ETag") != "" ||
		h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a token may be kept or read by others: %d %v", resp.StatusCode, h)
	}
	_, token, _ := strings.Cut(body, `"token":"`)
	token, _, _ = strings.Cut(token, `"`)
	return token
}

func sendWithToken(t *testing.T, addr, sku, user, token string) string {
	t.Helper()
	resp, _ := talk(t, addr, "POST /api/seckill/"+sku+"/order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nCookie: uid="+
		user+"\r\nSluice-Token: "+token+"\r\nConnection: close\r\n\r\n")
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Sluice-Reason"))
}

func TestOrderToken_IsForOneUserSKUAndTime(t *testing.T) {
	const minute = 60_000
	stock := &onePhase{phase: PhaseInStock, at: 100 * minute}
	addr, up := tokenGateway(t, stock)
	token := fetchToken(t, addr, "1001", "7")
	if len(token) != 22 {
		t.Fatalf("token %q", token)
	}
	for _, c := range []struct {
		sku, user, token string
		at               int64
		want             string
	}{
		{"1001", "7", token, 100, "200 "},
		{"1001", "7", token, 101, "200 "},
		{"1001", "7", token, 102, "403 token"},
		{"1001", "7", token, 99, "403 token"},
		{"1001", "8", token, 100, "403 token"},
		{"1002", "7", token, 100, "403 token"},
		{"1001", "7", "", 100, "403 token"},
		{"1001", "7", strings.Repeat("A", 22), 100, "403 token"},
		{"1001", "7", token + "\r\nSluice-Token: " + token, 100, "400 ambiguous"},
		{"1001", "7", token + "\r\nSluice_Token: x", 100, "400 ambiguous"},
	} {
		stock.at = c.at * minute
		if got := sendWithToken(t, addr, c.sku, c.user, c.token); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := up.all(); len(got) != 2 || strings.Contains(strings.Join(got, ""), "Token") {
		t.Errorf("the upstream saw %q", got)
	}
}

func TestOrderToken_IsGivenFromTheStartToItsUser(t *testing.T) {
	for phase := range PhaseEnded + 1 {
		addr, _ := tokenGateway(t, &onePhase{phase: phase})
		want := phase == PhaseInStock || phase == PhaseSoldOut
		if got := fetchToken(t, addr, "1001", "7") != ""; got != want {
			t.Errorf("%s: given %v", phase, got)
		}
	}
	addr, _ := tokenGateway(t, &onePhase{phase: PhaseInStock})
	token := fetchToken(t, addr, "1001", "7")
	if token == fetchToken(t, addr, "1001", "8") || token == fetchToken(t, addr, "1002", "7") {
		t.Error("one token for two users or SKUs")
	}
	if fetchToken(t, addr, "1001", "") != "" {
		t.Error("a token for no user")
	}
	resp, body := talk(t, addr, "GET /.sluice/stock/1001 HTTP/1.1\r\nHost: x\r\nCookie: uid=7\r\n"+
		"Connection: close\r\n\r\n")
	if strings.Contains(body, "token") || !strings.Contains(resp.Header.Get("Cache-Control"), "public") {
		t.Errorf("what every client may keep has a token: %v %s", resp.Header, body)
	}
}

func TestAuth_RouteWithoutItsKeyIsAnError(t *testing.T) {
	key := auth.VerifierOptions{OrderTokenKey: proofSecret, Slot: time.Minute}
	one := func(user string, token bool) []Route {
		return []Route{{Name: "a", Match: "/a/{sku}", Gate: route.Check, SKU: "$path_sku", User: user, OrderToken: token}}
	}
	another := Route{Name: "b", Match: "/b/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$cookie_id",
		OrderToken: true}
	for name, c := range map[string]struct {
		in     auth.VerifierOptions
		routes []Route
		want   string
	}{
		"no JWT":          {auth.VerifierOptions{}, one("$jwt_sub", false), "user: $jwt_… needs auth.jwt_algorithm"},
		"no cookie's key": {auth.VerifierOptions{}, one("$signed_uid", false), "user: $signed_… needs auth.cookie_key_file"},
		"no token's key": {auth.VerifierOptions{}, one("$cookie_uid", true),
			"order_token: needs auth.order_token_key_file"},
		"no user":          {key, one("", true), "order_token: is of a user and a SKU"},
		"user of the path": {key, one("$path_sku", true), "is not known where the token is given out"},
		"user of the body": {key, one("$json_uid", true), "is not known where the token is given out"},
		"two users":        {key, append(one("$cookie_uid", true), another), "another route with order_token"},
		"short key":        {auth.VerifierOptions{CookieKey: "short"}, nil, "cookie_key_file: "},
		"JWT from a body":  {byJWT("$form_token"), nil, "jwt_from: "},
		"short secret": {auth.VerifierOptions{JWT: auth.JWTOptions{Algorithm: "HS256", Key: "x"}, From: "$cookie_t"}, nil,
			"jwt_key_file: "},
	} {
		o := options(&recorder{})
		o.Auth, o.Routes = c.in, append(c.routes, Route{Name: "rest", Match: "/", Gate: route.Pass})
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(Faults(o)) == 0 {
			t.Errorf("%s: %v, want … %s …", name, err, c.want)
		}
		var at *route.Error
		if len(c.routes) > 0 && !errors.As(err, &at) {
			t.Errorf("%s: %v names no route", name, err)
		}
	}
}

// A reload that changes no key keeps what was verified; one that changes a key believes nothing of it.
func TestReload_KeepsVerifiedTokensWhileTheKeysAreTheSame(t *testing.T) {
	o := options(&recorder{})
	o.Auth = byJWT("$http_authorization")
	first, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Before = first
	second, err := New(o)
	if err != nil || second.auth != first.auth {
		t.Errorf("with the same keys all tokens are verified anew (%v)", err)
	}
	o.Routes = []Route{{Name: "a", Match: "/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$signed_uid"}}
	if _, err := New(o); err == nil {
		t.Error("a reload adds a route whose key there is not")
	}
	o.Routes, o.Auth.JWT.Key = orderRoutes, "another secret, of 32 bytes or more"
	if third, err := New(o); err != nil || third.auth == first.auth {
		t.Errorf("with another key the old one is still believed (%v)", err)
	}
}
