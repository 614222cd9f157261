package admin

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
)

func TestAdmin_WhyAsksForOneRequestOrOneUsersSKU(t *testing.T) {
	var asked Question
	api := &API{Log: slog.New(slog.DiscardHandler), Why: func(q Question, _ int) (d Decisions) {
		if asked = q; q.RequestID == "r-1" {
			d.Decisions = []json.RawMessage{json.RawMessage(`{"reason":"sold_out"}`)}
		}
		return d
	}}
	h := api.Handler()
	for _, tt := range []struct {
		query  string
		status int
		asked  Question
		body   string
	}{
		{"?request_id=r-1", 200, Question{RequestID: "r-1"}, `{"decisions":[{"reason":"sold_out"}]}`},
		{"?user=%E5%BC%A0&sku=1001", 200, Question{User: "张", SKU: "1001"}, `{"decisions":[]}`},
		{"?user=7", 400, Question{}, "name ?request_id="},
		{"?sku=1001", 400, Question{}, "name ?request_id="},
		{"", 400, Question{}, "name ?request_id="},
	} {
		asked = Question{}
		w := ask(h, "GET", "/api/v1/why"+tt.query, "", nil)
		if w.Code != tt.status || asked != tt.asked || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s: %d %s, asked for %+v; want %d %s, %+v", tt.query, w.Code, w.Body, asked, tt.status, tt.body, tt.asked)
		}
	}
	api.Why = nil
	if w := ask(api.Handler(), "GET", "/api/v1/why?request_id=r-1", "", nil); w.Code != 404 {
		t.Errorf("nothing is remembered: %d %s", w.Code, w.Body)
	}
}
