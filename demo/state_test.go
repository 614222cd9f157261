package demo

import (
	"bufio"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

func TestLinksLeadToThisHostAlone(t *testing.T) {
	for said, want := range map[string]string{
		`</.sluice/orders/a%2Fb?sku=1001>; rel="status"`: "/.sluice/orders/a%2Fb?sku=1001",
		"":                             "",
		`</x>; rel="next"`:             "",
		`<//evil/x>; rel="status"`:     "",
		`<http://evil>; rel="status"`:  "",
		"</x y>; rel=\"status\"":       "",
		"</x\r\nA: b>; rel=\"status\"": "",
		`</x>, </y>; rel="status"`:     "",
		"</" + strings.Repeat("x", longestLink) + `>; rel="status"`: "",
	} {
		if got := statusLink([]byte(said)); got != want {
			t.Errorf("%q leads to %q, want %q", said, got, want)
		}
	}
}

func TestStateOfAnOrderDecidesWhetherAShopperGoesHome(t *testing.T) {
	for _, c := range []struct {
		raw   string
		state string
		home  ending
		final bool
	}{
		{answerOf("200 OK", "", `{"state":"confirmed"}`), "confirmed", hadOne, true},
		{answerOf("200 OK", "", `{"state":"released"}`), "released", turnedAway, true},
		{answerOf("200 OK", "", `{"state":"held"}`), "held", 0, false},
		{answerOf("404 Not Found", "", `{"state":"none"}`), "none", 0, false},
		{answerOf("502 Bad Gateway", "", `<html>`), "none", 0, false},
		{answerOf("429 Too Many Requests", "X-Sluice-Reason: rate\r\n", ``), "", 0, false},
	} {
		var resp fasthttp.Response
		if err := resp.Read(bufio.NewReader(strings.NewReader(c.raw))); err != nil {
			t.Fatal(err)
		}
		a := understandState(&resp)
		if home, final := a.settles(); a.state != c.state || home != c.home || final != c.final {
			t.Errorf("%q: state %q, home %d, final %v; want %q, %d, %v", c.raw, a.state, home, final, c.state, c.home, c.final)
		}
	}
}
