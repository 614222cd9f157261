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
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, user, time.Now().Add(time.Hour).Unix()))
	return text + "." + macOf(text, base64.RawURLEncoding.EncodeToString)
}

func byJWT(from string) Proof {
	return Proof{JWT: auth.JWTOptions{Algorithm: "HS256", Key: proofSecret, Remember: 100}, From: from}
}

const provenOrder = "POST /api/seckill/1001/order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n"

func TestUserIsWhomTheShopHasSigned(t *testing.T) {
	signedCookie := "7." + macOf("7", hex.EncodeToString)
	express := "s%3A7." + strings.ReplaceAll(strings.ReplaceAll(strings.TrimRight(macOf("7", base64.StdEncoding.EncodeToString), "="), "+", "%2B"), "/", "%2F")
	for _, c := range []struct {
		name, user, from, header string
		status                   int
		reason                   string
	}{
		{"a token", "$jwt_sub", "$http_authorization", "Authorization: Bearer " + tokenOf("7") + "\r\n", 200, ""},
		{"a token in a cookie", "$jwt_sub", "$cookie_token", "Cookie: uid=8; token=" + tokenOf("7") + "\r\n", 200, ""},
		{"none", "$jwt_sub", "$http_authorization", "Cookie: uid=7\r\n", 401, "unidentified"},
		{"a forged one", "$jwt_sub", "$http_authorization", "Authorization: Bearer " + tokenOf("7") + "x\r\n", 401, "unidentified"},
		{"a word", "$jwt_sub", "$http_authorization", "Authorization: Bearer 7\r\n", 401, "unidentified"},
		{"two of them", "$jwt_sub", "$http_authorization", "Authorization: Bearer " + tokenOf("7") + "\r\nAuthorization: Bearer " + tokenOf("8") + "\r\n", 400, ""},
		{"a claim that it lacks", "u-$jwt_uid", "$http_authorization", "Authorization: Bearer " + tokenOf("7") + "\r\n", 401, "unidentified"},
		{"a user that is none", "$jwt_sub", "$http_authorization", "Authorization: Bearer " + tokenOf("") + "\r\n", 401, "unidentified"},
		{"a signed cookie", "$signed_uid", "", "Cookie: uid=" + signedCookie + "\r\n", 200, ""},
		{"one of Express", "$signed_uid", "", "Cookie: uid=" + express + "\r\n", 200, ""},
		{"an unsigned one", "$signed_uid", "", "Cookie: uid=7\r\n", 401, "unidentified"},
		{"another's", "$signed_uid", "", "Cookie: uid=8" + signedCookie[1:] + "\r\n", 401, "unidentified"},
		{"two cookies", "$signed_uid", "", "Cookie: uid=" + signedCookie + "; uid=7\r\n", 400, "ambiguous"},
	} {
		shop, stock := &seen{}, &remembering{}
		o := options(shop)
		o.Stock = stock
		o.Routes = []Route{{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: Check, SKU: "$path_sku", User: c.user}}
		o.Responses.Answers[UnidentifiedClass] = Answer{Status: 401}
		o.Proof = Proof{CookieKey: proofSecret}
		if c.from != "" {
			o.Proof = byJWT(c.from)
		}
		addr, _ := gate(t, o)
		resp, body := talk(t, addr, provenOrder+c.header+"\r\n")
		if resp.StatusCode != c.status || c.reason != "" && resp.Header.Get("X-Sluice-Reason") != c.reason {
			t.Errorf("%s: %d %s, want %d %s", c.name, resp.StatusCode, body, c.status, c.reason)
		}
		if admitted := c.status == 200; (len(shop.all()) == 1) != admitted || admitted && stock.user != "7" {
			t.Errorf("%s: the shop saw %q, the stock user %q", c.name, shop.all(), stock.user)
		}
		if challenged := resp.Header.Get("WWW-Authenticate") == "Bearer"; challenged != (c.status == http.StatusUnauthorized) {
			t.Errorf("%s: WWW-Authenticate %q", c.name, resp.Header.Get("WWW-Authenticate"))
		}
	}
}

// remembering notes who was let in.
type remembering struct {
	shelf
	user string
}

func (s *remembering) Enter(_ int64, _, user []byte) Reason { s.user = string(user); return Admitted }

// openShelf shows every SKU in one phase, at a time that the test sets.
type openShelf struct {
	phase Phase
	at    int64
}

func (s *openShelf) Show(int64, []byte) Shown { return Shown{Phase: s.phase, Free: -1} }
func (s *openShelf) Time(int64) int64         { return s.at }

func ticketed(t *testing.T, sh *openShelf) (addr string, shop *seen) {
	t.Helper()
	shop = &seen{}
	o := options(shop)
	o.Routes = []Route{
		{Name: "order", Match: "POST /api/seckill/{sku}/order", Gate: Check, SKU: "$path_sku", User: "$cookie_uid", OrderToken: true},
		{Name: "rest", Match: "/", Gate: Pass},
	}
	o.Proof = Proof{TicketKey: proofSecret, Slot: time.Minute}
	o.Shelf = sh
	addr, _ = gate(t, o)
	return addr, shop
}

// tokenTold is the token that a user is told of a SKU; "" = none.
func tokenTold(t *testing.T, addr, sku, user string) string {
	t.Helper()
	resp, body := talk(t, addr, "GET /.sluice/stock/"+sku+"?now=0.5&token=1 HTTP/1.1\r\nHost: x\r\nOrigin: https://evil.example\r\nCookie: uid="+user+"\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != 200 || resp.Header.Get("Cache-Control") != "private, no-store" || resp.Header.Get("ETag") != "" || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a token may be kept or read by others: %d %v", resp.StatusCode, resp.Header)
	}
	_, token, _ := strings.Cut(body, `"token":"`)
	token, _, _ = strings.Cut(token, `"`)
	return token
}

func ticketOrder(t *testing.T, addr, sku, user, token string) string {
	t.Helper()
	resp, _ := talk(t, addr, "POST /api/seckill/"+sku+"/order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nCookie: uid="+user+"\r\nSluice-Token: "+token+"\r\nConnection: close\r\n\r\n")
	return fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("X-Sluice-Reason"))
}

func TestOrderNeedsTheTokenOfItsUserSKUAndTime(t *testing.T) {
	const minute = 60_000
	sh := &openShelf{phase: Open, at: 100 * minute}
	addr, shop := ticketed(t, sh)
	token := tokenTold(t, addr, "1001", "7")
	if len(token) != auth.TicketLength {
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
		{"1001", "7", strings.Repeat("A", auth.TicketLength), 100, "403 token"},
		{"1001", "7", token + "\r\nSluice-Token: " + token, 100, "400 ambiguous"},
	} {
		sh.at = c.at * minute
		if got := ticketOrder(t, addr, c.sku, c.user, c.token); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := shop.all(); len(got) != 2 || strings.Contains(strings.Join(got, ""), "Token") {
		t.Errorf("the shop saw %q", got)
	}
}

func TestTokenIsToldFromTheStartOnAndToItsUser(t *testing.T) {
	for phase := range numPhases {
		addr, _ := ticketed(t, &openShelf{phase: phase})
		if got := tokenTold(t, addr, "1001", "7") != ""; got != (phase == Open || phase == Gone) {
			t.Errorf("%s: told %v", phase, got)
		}
	}
	addr, _ := ticketed(t, &openShelf{phase: Open})
	if tokenTold(t, addr, "1001", "7") == tokenTold(t, addr, "1001", "8") || tokenTold(t, addr, "1001", "7") == tokenTold(t, addr, "1002", "7") || tokenTold(t, addr, "1001", "") != "" {
		t.Error("one token for two users or SKUs, or for nobody")
	}
	resp, body := talk(t, addr, "GET /.sluice/stock/1001 HTTP/1.1\r\nHost: x\r\nCookie: uid=7\r\nConnection: close\r\n\r\n")
	if strings.Contains(body, "token") || !strings.Contains(resp.Header.Get("Cache-Control"), "public") {
		t.Errorf("what everybody may keep has a token: %v %s", resp.Header, body)
	}
}

func TestProofThatARouteLacksIsRefused(t *testing.T) {
	key := Proof{TicketKey: proofSecret, Slot: time.Minute}
	route := func(user string, token bool) Route {
		return Route{Name: "a", Match: "/a/{sku}", Gate: Check, SKU: "$path_sku", User: user, OrderToken: token}
	}
	for name, c := range map[string]struct {
		in     Proof
		routes []Route
		want   string
	}{
		"no JWT":           {Proof{}, []Route{route("$jwt_sub", false)}, "user: $jwt_… needs proof.jwt_algorithm"},
		"no cookie's key":  {Proof{}, []Route{route("$signed_uid", false)}, "user: $signed_… needs proof.cookie_key_file"},
		"no token's key":   {Proof{}, []Route{route("$cookie_uid", true)}, "order_token: needs proof.order_token_key_file"},
		"no user":          {key, []Route{route("", true)}, "order_token: is of a user and a SKU"},
		"user of the path": {key, []Route{route("$path_sku", true)}, "is not known where the token is told"},
		"user of the body": {key, []Route{route("$json_uid", true)}, "is not known where the token is told"},
		"two users":        {key, []Route{route("$cookie_uid", true), {Name: "b", Match: "/b/{sku}", Gate: Check, SKU: "$path_sku", User: "$cookie_id", OrderToken: true}}, "another route with order_token"},
		"short key":        {Proof{CookieKey: "short"}, nil, "cookie_key_file: "},
		"JWT from a body":  {byJWT("$form_token"), nil, "jwt_from: "},
		"short secret":     {Proof{JWT: auth.JWTOptions{Algorithm: "HS256", Key: "x"}, From: "$cookie_t"}, nil, "jwt_key_file: "},
	} {
		o := options(&seen{})
		o.Proof, o.Routes = c.in, append(c.routes, Route{Name: "rest", Match: "/", Gate: Pass})
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), c.want) || CompileProof(o.Proof, o.Routes) == nil {
			t.Errorf("%s: %v, want … %s …", name, err, c.want)
		}
		var at *RouteError
		if len(c.routes) > 0 && !errors.As(err, &at) {
			t.Errorf("%s: %v names no route", name, err)
		}
	}
}

// A reload that changes no key forgets nobody who was verified; one that does believes nobody of before.
func TestReloadKeepsWhoWasVerifiedWhileTheKeysAreTheSame(t *testing.T) {
	o := options(&seen{})
	o.Proof = byJWT("$http_authorization")
	first, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Before = first
	second, err := New(o)
	if err != nil || second.prover != first.prover {
		t.Errorf("with the same keys all tokens are verified anew (%v)", err)
	}
	o.Proof.JWT.Key = "another secret, of 32 bytes or more"
	if third, err := New(o); err != nil || third.prover == first.prover {
		t.Errorf("with another key the old one is still believed (%v)", err)
	}
}
