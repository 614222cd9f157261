package proxy

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// fakeFeedback keeps what is recorded.
type fakeFeedback struct {
	soldOut  map[string]bool
	recorded []string
}

func (f *fakeFeedback) SoldOut(_ int64, sku []byte) bool { return f.soldOut[string(sku)] }
func (f *fakeFeedback) Record(_ int64, sku []byte, reserved bool) {
	text := string(sku)
	if reserved {
		text += " reserved"
	}
	f.recorded = append(f.recorded, text)
}

func TestFeedback_ResponseTellsThatASKUIsSoldOut(t *testing.T) {
	on := &SoldOutAnswer{Status: []int{409}, Header: "X-Stock", Value: "0",
		JSON: &JSONValue{Keys: []string{"data", "code"}, Values: []string{`500500`, `"gone"`}}}
	long := `{"data":{"code":500500},"x":"` + strings.Repeat("x", maxVerdictBody) + `"}`
	for _, tt := range []struct {
		name     string
		gate     route.Gate
		on       *SoldOutAnswer
		response func(*fasthttp.Response)
		recorded string
	}{
		{"all of it", route.Limit, on, says(409, "X-Stock", "0", `{"data":{"code":500500}}`), "1001"},
		{"checked", route.Check, on, says(409, "X-Stock", "0", `{"data":{"code":"gone"}}`), "1001"},
		{"another status", route.Limit, on, says(200, "X-Stock", "0", `{"data":{"code":500500}}`), ""},
		{"another value", route.Limit, on, says(409, "X-Stock", "1", `{"data":{"code":500500}}`), ""},
		{"no header", route.Limit, on, says(409, "X-Other", "0", `{"data":{"code":500500}}`), ""},
		{"another code", route.Limit, on, says(409, "X-Stock", "0", `{"data":{"code":0}}`), ""},
		{"no JSON", route.Limit, on, says(409, "X-Stock", "0", `gone`), ""},
		{"a page", route.Limit, on, says(409, "X-Stock", "0", long), ""},
		{"its own word", route.Check, nil, says(200, "Sluice-Order", "sold-out", ""), "1001"},
		{"another word", route.Check, nil, says(200, "Sluice-Order", "released", ""), ""},
		{"its own word of an order", route.Reserve, on, says(200, "Sluice-Order", "sold-out", ""), "1001 reserved"},
		{"the response to an order", route.Reserve, on, says(409, "X-Stock", "0", `{"data":{"code":500500}}`), ""},
		{"a pass route", route.Pass, on, says(409, "X-Stock", "0", `{"data":{"code":500500}}`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, ledger := reserving(upstreamFunc(func(_ *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
				tt.response(resp)
				return upstream.Answered
			}))
			f := &fakeFeedback{}
			o.Feedback, o.SoldOutOn, o.Routes[0].Gate = f, tt.on, tt.gate
			resp, _, _ := handleOne(t, o, buying)
			if got := strings.Join(f.recorded, ","); got != tt.recorded {
				t.Errorf("recorded %q, want %q", got, tt.recorded)
			}
			if tt.gate != route.Pass && resp.Header.Get("Sluice-Order") != "" {
				t.Error("Sluice-Order reached the client")
			}
			settled := ledger.settled()
			if tt.recorded == "1001 reserved" && (len(settled) != 1 || settled[0] != metrics.OrderRejected) {
				t.Errorf("settled %v, want the units released", settled)
			}
		})
	}
}

func says(status int, name, value, body string) func(*fasthttp.Response) {
	return func(resp *fasthttp.Response) {
		resp.SetStatusCode(status)
		resp.Header.Set(name, value)
		resp.SetBodyString(body)
	}
}

// Where the ledger reserves, it decides: what the upstream has said of a SKU is for limit and check routes.
func TestFeedback_SoldOutSKUIsRejected(t *testing.T) {
	for gate, want := range map[route.Gate]string{
		route.Limit: reject.SoldOut.String(), route.Check: reject.SoldOut.String(), route.Reserve: "200",
	} {
		to := &recorder{}
		o, _ := reserving(to)
		o.Routes[0].Gate, o.Feedback = gate, &fakeFeedback{soldOut: map[string]bool{"1001": true}}
		resp, _, _ := handleOne(t, o, buying)
		if got := reasonOrStatus(resp); got != want || (len(to.all()) == 0) != (want != "200") {
			t.Errorf("gate %v: %s, the upstream saw %q", gate, got, to.all())
		}
	}
}
