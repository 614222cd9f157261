package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// The user of an order who proves it sees the shop's answer and may cancel, without the address that it was told.
// Others may not.
func TestDelivery_ProvenUserNeedsNoProofOfTheOrder(t *testing.T) {
	t.Parallel()
	r, shop := redistest.Start(t), openLameShop(t)
	key, secret := filepath.Join(t.TempDir(), "jwt.key"), strings.Repeat("a", 32)
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	g := gate(t, redisAt(r), boundless, shop.patient(shop.server.URL),
		"[auth]\njwt_algorithm = \"HS256\"\njwt_key_file = \""+key+"\"",
		strings.Replace(waitingRoutes, "$cookie_uid", "$jwt_uid", 1))
	ok(t, "stock", "set", "--config", g.file, "1001", "5")
	const where = "/.sluice/orders/key-1?sku=1001"
	owner, other := "Bearer "+signedBy(secret, `"uid":"7",`), "Bearer "+signedBy(secret, `"uid":"8",`)
	if w := g.call(t, "POST", orderPath, "", "Authorization", owner, "Idempotency-Key", "key-1"); w.status != 202 {
		t.Fatalf("%+v", w)
	}
	soon(t, "the owner sees the answer", func() bool {
		w := g.call(t, "GET", where, "", "Authorization", owner)
		return w.State == "sold" && w.Answer != nil && w.Answer.Status == 201
	})
	for what, token := range map[string]string{"without a token": "", "another user": other,
		"a token of another key": "Bearer " + signedBy(strings.Repeat("b", 32), `"uid":"7",`)} {
		if w := g.call(t, "GET", where, "", "Authorization", token); w.State != "sold" || w.Answer != nil {
			t.Errorf("%s sees %+v", what, w)
		}
		if w := g.call(t, "DELETE", where, "", "Authorization", token); w.status != 403 {
			t.Errorf("%s cancels: %+v", what, w)
		}
	}
	if w := g.call(t, "DELETE", where, "", "Authorization", owner); w.status != 409 {
		t.Errorf("the owner cancels what is done: %+v", w)
	}
}
