package gateway

import (
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// Every answer of a gate, of what is there and of what is not, is as openapi.yaml says.
func TestApp_LiveGateAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	g, file := steer(t)
	text, err := os.ReadFile("../admin/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := testkit.ReadAPI(string(text))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	ask := func(operation, target, body string, want int) {
		t.Helper()
		method, path, _ := strings.Cut(operation, " ")
		if target == "" {
			target = path
		}
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.RemoteAddr, r.Host = "127.0.0.1:5555", "localhost"
		w := httptest.NewRecorder()
		g.control.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s %s %s: %d %s, want %d", operation, target, body, w.Code, w.Body, want)
		}
		if err := d.Check(operation, w.Code, w.Header().Get("Content-Type"), w.Body.Bytes()); err != nil {
			t.Error(err)
		}
		asked[operation] = true
	}
	ask("POST /api/v1/stock/{sku}", "/api/v1/stock/1001", `{"set": 10}`, 200)
	ask("POST /api/v1/stock/{sku}", "/api/v1/stock/1001", `{"set": -1}`, 400)
	ask("GET /api/v1/stock/{sku}", "/api/v1/stock/1001", "", 200)
	ask("GET /api/v1/stock/{sku}", "/api/v1/stock/7", "", 404)
	ask("POST /api/v1/overrides", "", `{"sku": "1001", "value": "paused", "for": "10m"}`, 200)
	ask("POST /api/v1/overrides", "", `{"key": "limits.window.max", "value": 50, "for": "10m"}`, 200)
	ask("POST /api/v1/overrides", "", `{"key": "limits.window.max", "value": 5, "for": "10m"}`, 400)
	for _, path := range []string{"status", "sales", "rooms", "limits", "targets", "config", "overrides", "history",
		"audit", "openapi.yaml", "stock", "reservations", "top-keys", "queue", "settlement"} {
		ask("GET /api/v1/"+path, "", "", 200)
	}
	ask("POST /api/v1/sales/{name}", "/api/v1/sales/night", `{"state": "paused"}`, 200)
	ask("POST /api/v1/rooms/{name}", "/api/v1/rooms/night", `{"state": "hold"}`, 404)
	ask("POST /api/v1/sales/{name}", "/api/v1/sales/night", `{"state": "waiting"}`, 400)
	ask("POST /api/v1/sales/{name}", "/api/v1/sales/day", `{"state": "paused"}`, 404)
	ask("GET /api/v1/overrides/{id}", "/api/v1/overrides/1", "", 200)
	ask("DELETE /api/v1/overrides/{id}", "/api/v1/overrides/1", "", 200)
	ask("DELETE /api/v1/overrides/{id}", "/api/v1/overrides/1", "", 404)
	ask("POST /api/v1/stock/{sku}/recover", "/api/v1/stock/1001/recover",
		`{"orders": [{"serial": "k-1", "user": "7", "quantity": 1}], "apply": true}`, 200)
	ask("GET /api/v1/reservations/{serial}", "/api/v1/reservations/k-1", "", 200)
	ask("POST /api/v1/reservations/{serial}/confirm", "/api/v1/reservations/k-1/confirm", "", 200)
	ask("POST /api/v1/reservations/{serial}/release", "/api/v1/reservations/k-1/release", "", 409)
	ask("POST /api/v1/reservations/{serial}/requeue", "/api/v1/reservations/k-1/requeue", "", 409)
	ask("POST /api/v1/reservations/{serial}/refund", "/api/v1/reservations/k-1/refund", "", 200)
	ask("POST /api/v1/stock/{sku}/recover", "/api/v1/stock/1001/recover",
		`{"orders": [{"serial": "k-2", "quantity": 1}]}`, 200)
	ask("POST /api/v1/stock/{sku}/recover", "/api/v1/stock/1002/recover", `{"total": 5, "apply": true}`, 200)
	ask("POST /api/v1/stock/{sku}/recover", "/api/v1/stock/1003/recover", `{"total": 5}`, 200)
	ask("POST /api/v1/stock/{sku}/recover", "/api/v1/stock/1001/recover", `{"total": 5, "none": true, "apply": true}`, 409)
	ask("POST /api/v1/queue/take", "", `{"n": 1, "lease": "1s"}`, 404) // no route has orders that wait
	ask("POST /api/v1/queue/settle", "", `{"orders": []}`, 404)
	ask("GET /api/v1/preflight", "", "", 200)
	ask("GET /api/v1/report", "", "", 200)
	ask("GET /api/v1/report", "/api/v1/report?sale=night", "", 200)
	ask("GET /api/v1/report", "/api/v1/report?format=csv", "", 200)
	ask("GET /api/v1/report", "/api/v1/report?sale=day", "", 404)
	ask("GET /api/v1/why", "/api/v1/why?request_id=x", "", 200)
	ask("POST /api/v1/reload", "", "", 200)
	*file = "nonsense"
	ask("POST /api/v1/reload", "", `{"overrides": "drop"}`, 422)
	ask("GET /api/v1/status", "", "", 200)
	ask("GET /api/v1/fleet", "", "", 200) // in memory instances share nothing: there are none
	ask("GET /api/v1/limits/{name}/key", "/api/v1/limits/per_ip/key?value=10.0.0.1", "", 200)
	ask("GET /api/v1/limits/{name}/key", "/api/v1/limits/per_ip/key?value=ten", "", 400)
	ask("DELETE /api/v1/limits/{name}/key", "/api/v1/limits/per_ip/key?value=10.0.0.1", "", 200)
	ask("DELETE /api/v1/limits/{name}/key", "/api/v1/limits/per_ip/key?value=10.0.0.1&scope=fleet", "", 409)
	ask("POST /api/v1/drain", "", `{"scope": "fleet"}`, 409)
	ask("POST /api/v1/drain", "", "", 200)
	for _, operation := range d.Operations() {
		if !asked[operation] && operation != "GET /api/v1/events" {
			t.Errorf("%s was not asked for", operation)
		}
	}
}
