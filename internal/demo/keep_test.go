package demo

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/admin"
)

// The link that the demo prints leads to the dashboard, and its token to what that shows.
func TestKeep_TheDemosLinkOpensItsDashboard(t *testing.T) {
	d := &Options{Units: 5, Gate: "reserve", Listen: "127.0.0.1:0", Dashboard: "127.0.0.1:0", Keep: true}
	units, err := newDemoStock(t.Context(), true, d.Units)
	if err != nil {
		t.Fatal(err)
	}
	defer units.close()
	shop, err := OpenShop(units.shopOptions(d))
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	g, front, err := d.openGate(shop, units, keepText(time.Now().Add(-time.Minute).Truncate(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	defer g.stop()
	base, token, ok := strings.Cut(g.watchAt(), "/#token=")
	if !ok || token == "" || strings.Contains(token, "secret") {
		t.Fatalf("the link is %q", g.watchAt())
	}
	get := func(path, token string, into any) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && into != nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", path, err, text)
		}
		return resp.StatusCode
	}
	if page, data := get("/", "", nil), get("/api/v1/status", "", nil); page != 200 || data != 401 {
		t.Errorf("without the token: page %d, data %d", page, data)
	}
	crowd := Crowd{Front: front, Shoppers: 20, Spread: 50 * time.Millisecond,
		GiveUpAfter: 30 * time.Second, Ledger: units.books(g.Orders())}
	if _, err := crowd.Run(context.Background(), shop, io.Discard); err != nil {
		t.Fatal(err)
	}
	var status admin.Status
	if code := get("/api/v1/status", token, &status); code != 200 || status.Role != "operator" || !status.Ready ||
		len(status.Stock) != 1 || time.Since(status.Now).Abs() > time.Minute {
		t.Errorf("%d %+v", code, status)
	}
	var checked struct {
		OK       bool
		Findings []admin.Finding
	}
	if code := get("/api/v1/preflight", token, &checked); code != 200 || !checked.OK || len(checked.Findings) < 6 {
		t.Errorf("%d %+v", code, checked)
	}
	var report admin.Report
	if code := get("/api/v1/report?sale=demo", token, &report); code != 200 ||
		report.Balances == nil || !*report.Balances ||
		len(report.Stock) != 1 || !report.Stock[0].Counted || report.Stock[0].Sold != shop.Totals().Orders {
		t.Errorf("%d %+v, %d orders", code, report, shop.Totals().Orders)
	}
}
