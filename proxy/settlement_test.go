package proxy

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"sluice/proxy/metrics"
	"sluice/upstream"
)

// responding is an upstream that responds with a status, a body, and a Sluice-Order field for each of words.
func responding(status int, body string, words ...string) upstreamFunc {
	return func(_ *upstream.Request, resp *fasthttp.Response) upstream.Outcome {
		resp.SetStatusCode(status)
		resp.SetBodyString(body)
		for _, w := range words {
			resp.Header.Add("sluice-order", w)
		}
		return upstream.Answered
	}
}

func TestSettlement_ResponseDecidesTheOrder(t *testing.T) {
	const confirmed, rejected, unknown = metrics.OrderConfirmed, metrics.OrderRejected, metrics.OrderUnknown
	byJSON := &JSONValue{Keys: []string{"data", "code"}, Values: []string{"0", `"ok"`}}
	for name, tt := range map[string]struct {
		to      upstreamFunc
		json    *JSONValue
		status  int
		outcome metrics.OrderOutcome
	}{
		"200":               {responding(200, ""), nil, 200, confirmed},
		"201":               {responding(201, ""), nil, 201, confirmed},
		"302":               {responding(302, ""), nil, 302, rejected},
		"303":               {responding(303, ""), nil, 303, unknown},
		"404":               {responding(404, ""), nil, 404, rejected},
		"500":               {responding(500, ""), nil, 500, unknown},
		"never sent":        {ending(upstream.NotSent), nil, 503, rejected},
		"timeout":           {ending(upstream.TimedOut), nil, 504, unknown},
		"cut":               {ending(upstream.Broken), nil, 502, unknown},
		"500 but confirmed": {responding(500, "", "confirmed"), nil, 500, confirmed},
		"200 but released":  {responding(200, "", "released"), nil, 200, rejected},
		"200 but sold out":  {responding(200, "", "sold-out"), nil, 200, rejected},
		"unknown word":      {responding(200, "", "maybe"), nil, 200, unknown},
		"two words":         {responding(200, "", "confirmed", "released"), nil, 200, unknown},
		"JSON 0":            {responding(200, `{"data":{"code":0}}`), byJSON, 200, confirmed},
		"JSON ok":           {responding(200, `{"data":{"code":"ok"}}`), byJSON, 200, confirmed},
		"another value":     {responding(200, `{"data":{"code":500500}}`), byJSON, 200, rejected},
		"number as text":    {responding(200, `{"data":{"code":"0"}}`), byJSON, 200, rejected},
		"JSON elsewhere":    {responding(200, `{"code":0}`), byJSON, 200, unknown},
		"JSON twice":        {responding(200, `{"data":{"code":1,"code":0}}`), byJSON, 200, unknown},
		"no JSON":           {responding(200, `<html>`), byJSON, 200, unknown},
		"JSON, but 500":     {responding(500, `{"data":{"code":0}}`), byJSON, 500, unknown},
		"JSON, but 400":     {responding(400, `{"data":{"code":0}}`), byJSON, 400, rejected},
	} {
		t.Run(name, func(t *testing.T) {
			o, ledger := reserving(tt.to)
			o.Outcomes.ConfirmJSON = tt.json
			resp, body, _ := handleOne(t, o, buying)
			if resp.StatusCode != tt.status || resp.Header.Get("Sluice-Order") != "" {
				t.Errorf("response %v %s", resp, body)
			}
			if f := ledger.settled(); len(f) != 1 || f[0] != tt.outcome {
				t.Errorf("settled %v, want %v once", f, tt.outcome)
			}
			link := strings.Contains(resp.Header.Get("Link"), "/.sluice/orders/s-1?sku=1001")
			if link != (tt.outcome == unknown && tt.status >= 502) {
				t.Errorf("Link: %q", resp.Header.Get("Link"))
			}
		})
	}
}

// A panic may come after the upstream was asked: the order's outcome is unknown, and no response denies it.
func TestSettlement_PanicLeavesTheOrderUnknown(t *testing.T) {
	o, ledger := reserving(upstreamFunc(func(*upstream.Request, *fasthttp.Response) upstream.Outcome {
		panic("on the way back")
	}))
	resp, body, _ := handleOne(t, o, buying)
	if resp.StatusCode != 500 || deniesOrder(body) || !strings.Contains(body, "We do not know yet") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if f := ledger.settled(); len(f) != 1 || f[0] != metrics.OrderUnknown {
		t.Errorf("settled %v, want unknown", f)
	}
}
