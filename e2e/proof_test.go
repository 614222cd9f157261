package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// signedBy is the shop's token for user 7, good for an hour, with these claims too: JSON members that end with a comma.
func signedBy(secret string, claims ...string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256"}`)) + "." +
		encode(fmt.Appendf(nil, `{%s"sub":"7","exp":%d}`, strings.Join(claims, ""), time.Now().Add(time.Hour).Unix()))
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(text))
	return text + "." + encode(h.Sum(nil))
}

// A user is whom the shop has signed; a key that was exchanged is believed without a restart, and the old one no
// longer; an unsafe key changes nothing.
func TestJWT_KeyIsExchangedWhileTheGateRuns(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	key := filepath.Join(t.TempDir(), "jwt.key")
	first, second := strings.Repeat("a", 32), strings.Repeat("b", 32)
	write := func(text string) {
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(first)
	g := gate(t, shop.setting(), `stock.source = "off"`, "[auth]\njwt_algorithm = \"HS256\"\njwt_key_file = \""+key+"\"",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\nuser = \"$jwt_sub\"")
	status := func(token string) int {
		req, err := http.NewRequest("POST", "http://"+g.front+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if old, later, none := status(signedBy(first)), status(signedBy(second)), status(""); old != 200 || later != 401 ||
		none != 401 {
		t.Fatalf("with its key %d, with another %d, without %d", old, later, none)
	}
	write("-----BEGIN PUBLIC KEY-----\n" + strings.Repeat("b", 40))
	soon(t, "the bad key is told", func() bool { return strings.Contains(g.log.String(), "HS256 wants a secret") })
	if got := status(signedBy(first)); got != 200 {
		t.Errorf("a bad key changed what is believed: %d", got)
	}
	write(second)
	soon(t, "the new key is believed", func() bool { return status(signedBy(second)) == 200 })
	if got := status(signedBy(first)); got != 401 {
		t.Errorf("the old key is still believed: %d", got)
	}
	g.logs(t, "auth.jwt_key_file")
	if strings.Contains(g.log.String(), second) {
		t.Error("the log tells the key")
	}
}

// A buyer whose claims do not meet the route's conditions hears which one, and the shop hears nothing of the order.
func TestRequire_OnlyTokensThatMeetEveryConditionReachTheShop(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	secret := strings.Repeat("a", 32)
	key := filepath.Join(t.TempDir(), "jwt.key")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	settings := []string{shop.setting(), `stock.source = "off"`,
		"[auth]\njwt_algorithm = \"HS256\"\njwt_key_file = \"" + key + "\"",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"limit\"\nuser = \"$jwt_sub\"\n" +
			`require = ["$jwt_phone_verified=true", "$jwt_level>=2"]`}
	g := gate(t, settings...)
	path := file(t, strings.Join(settings, "\n"))
	for claims, want := range map[string]struct {
		status         int
		reason, detail string
	}{
		`"phone_verified":true,"level":2,`:    {200, "", ""},
		`"phone_verified":"true","level":11,`: {200, "", ""},
		`"phone_verified":true,"level":1,`:    {403, "denied", "condition not met: $jwt_level>=2"},
		`"phone_verified":false,"level":2,`:   {403, "denied", "condition not met: $jwt_phone_verified=true"},
		`"phone_verified":true,`:              {401, "unidentified", "token lacks the claim: $jwt_level"},
		`"phone_verified":true,"level":2.5,`:  {401, "unidentified", "token lacks the claim: $jwt_level"},
	} {
		header := "Authorization: Bearer " + signedBy(secret, claims)
		a := g.raw(t, complete("POST", "/order", "Accept: application/json\r\n"+header))
		a.must(t, want.status, want.reason)
		if !strings.Contains(strings.ReplaceAll(a.body, `\u003e`, ">"), want.detail) {
			t.Errorf("%s: the answer does not name %q: %s", claims, want.detail, a.body)
		}
		shown := explained(t, want.reason, "POST /order", "--config", path, "-H", header)
		wants(t, shown, "conditions (route.require): $jwt_phone_verified=true, $jwt_level>=2: denied, unidentified")
		if want.detail != "" {
			wants(t, shown, "detail    "+want.detail+"\n")
		}
	}
	none := g.raw(t, complete("POST", "/order", "Accept: application/json\r\nCookie: uid=7"))
	none.must(t, 401, "unidentified")
	wants(t, none.body, "token missing where auth.jwt_from looks: $jwt_sub")
	if n := shop.arrivals.Load(); n != 2 {
		t.Errorf("the shop saw %d requests, want the 2 that meet the conditions", n)
	}
	g.wantMetric(2, "sluice_rejected_requests_total", `reason="denied"`)
	g.wantMetric(2, "sluice_rejection_details_total", `cause="condition_unmet"`)
	for condition, want := range map[string]string{
		"jwt_level>=2":  `"jwt_level" is the same for every request: write "$jwt_level"`,
		"$jwt_level=>2": `"$jwt_level=>2" has an unknown operator; write one of = != >= <= > <`,
	} {
		bad := file(t, strings.ReplaceAll(strings.Join(settings, "\n"), "$jwt_level>=2", condition))
		if s := run(t, "", "check", "--config", bad); s.code == 0 || !strings.Contains(s.out+s.complaint,
			"route[1].require[2]: "+want) {
			t.Errorf("check of %q: exit code %d: %s%s", condition, s.code, s.out, s.complaint)
		}
	}
}
