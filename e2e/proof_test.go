package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
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
		return g.ask("POST", "/", "Authorization: Bearer "+token).status
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
