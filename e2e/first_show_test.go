package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// A page that asks an instance right after its start is told what is left, and is given the token of its order: nobody
// shows a page in grey because a sale's instances are replaced one by one.
func TestStart_StockIsShownFromTheFirstQuestionOn(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	key := filepath.Join(t.TempDir(), "token.key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	for gateName, stock := range map[string]string{"reserve": "", "check": "stock.layout.key = \"shop:$sku\"\n"} {
		t.Run(gateName, func(t *testing.T) {
			t.Parallel()
			shop := open(t, nil)
			settings := []string{redisAt(r), boundless, shop.setting(), "stock.detail = \"exact\"",
				stock + fmt.Sprintf("auth.order_token_key_file = %q", key)}
			skus := []string{gateName + "-1", gateName + "-2", gateName + "-of-no-sale"}
			sale := strings.Replace(saleOf(time.Now().Add(-time.Minute)), `"1001"`, `"`+skus[0]+`", "`+skus[1]+`"`, 1)
			settings = append(settings, sale,
				strings.NewReplacer(`"reserve"`, `"`+gateName+`"`, `"$cookie_uid"`, "\"$cookie_uid\"\norder_token = true").
					Replace(reserveRoutes))
			g := gate(t, settings...)
			for _, sku := range skus {
				if gateName == "reserve" {
					ok(t, "stock", "set", "--config", g.file, sku, "7")
				} else if err := r.Client.Set(t.Context(), "shop:"+sku, 7, 0).Err(); err != nil {
					t.Fatal(err)
				}
			}
			next := g.again(t)
			for _, sku := range skus {
				s, _ := next.shows("/" + sku + "?token=1&now=1")
				if s.Phase != "open" || s.Free == nil || *s.Free != 7 {
					t.Errorf("the first answer about %s: %+v", sku, s)
				}
				if s, _ := next.shows("/"+sku+"?token=1&now=2", "Cookie: uid=7"); s.Token == "" {
					t.Errorf("the second answer about %s has no token: %+v", sku, s)
				}
			}
		})
	}
}
