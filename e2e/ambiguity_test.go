package e2e

import (
	"strings"
	"testing"
)

// pastTheGate are routes by which an order can be placed, and the rest of the shop, which nothing guards.
const pastTheGate = `
[[route]]
name = "order"
match = "POST /order/{sku}"
gate = "check"
sku = "$path_sku"
user = "$cookie_user_id"

[[route]]
name = "slash"
match = "POST /slash/{sku}/"
gate = "check"
sku = "$path_sku"
user = "$cookie_user_id"

[[route]]
name = "buy"
match = "POST /buy/"
gate = "check"
sku = "1001"

[[route]]
name = "rest"
match = "/"
gate = "pass"
`

// rejects sends requests that some shop reads as another order: each is ambiguous, and none arrives.
func (g *running) rejects(t *testing.T, shop *shop, requests ...string) {
	t.Helper()
	before := shop.arrivals.Load()
	for _, text := range requests {
		a := g.raw(t, text)
		line, _, _ := strings.Cut(text, "\r\n")
		if a.status != 400 || a.reason != "ambiguous" || !strings.Contains(a.body, "cause") {
			t.Errorf("%s: answered %d %q, want 400 ambiguous with its cause: %s", line, a.status, a.reason, a.body)
		}
	}
	if n := shop.arrivals.Load() - before; n != 0 {
		t.Errorf("%d of these requests reached the shop", n)
	}
}

// passes sends requests that no shop reads in another way.
func (g *running) passes(t *testing.T, requests ...string) {
	t.Helper()
	for _, text := range requests {
		if a := g.raw(t, text); a.status != 200 {
			line, _, _ := strings.Cut(text, "\r\n")
			t.Errorf("%s: answered %d %q, want 200: %s", line, a.status, a.reason, a.body)
		}
	}
}

// postsTo are requests for these targets, of the user 7.
func postsTo(targets ...string) (all []string) {
	for _, target := range targets {
		all = append(all, complete("POST", target, "Cookie: user_id=7"))
	}
	return all
}

func TestAmbiguity_TargetWithAnAuthorityIsNoWayAroundTheGate(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), pastTheGate)
	g.rejects(t, shop, postsTo(
		"//evil/order/1001", "///evil/order/1001", "////order/1001", `/\evil/order/1001`, `/\/evil/order/1001`,
		`//evil\order/1001`, `//evil\x/order/1001`, "//@/order/1001", "//u:p@evil:80/order/1001", "//[::1]/order/1001",
		"//evil;x/order/1001", "/%2fevil/order/1001", "/%2Fevil/order/1001", "/%5cevil/order/1001",
		"/%252fevil/order/1001", "//evil%2forder/1001", "/.//evil/order/1001", "/./\\evil/order/1001",
		"//evil//evil/order/1001", "/;a/evil/order/1001", "/%09/evil/order/1001", "/or%09der/1001",
		"//evil/order;jsessionid=1/1001", "//evil/x/..;/order/1001", "//evil/x/%2e%2e/order/1001",
		"http://shop//evil/order/1001", "http://shop/order;a/1001", "//evil/ORDER/1001", "//evil/slash/1001")...)
	g.passes(t, postsTo(
		"/order/1001", "http://shop/order/1001", "//cdn/logo.png", "//evil/x/order/1001", "/x//evil/order/1001",
		"/evil:80/order/1001", "/x;jsessionid=1/order/1001", "/page?to=//evil/order/1001")...)
}

func TestAmbiguity_SlashAtTheEndIsNoWayAroundTheGate(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), pastTheGate)
	g.rejects(t, shop, postsTo("/slash/1001", "/Slash/1001", "/slash/%31001", "/buy", "/BUY", "/bu%79", "/order/1001/")...)
	g.passes(t, postsTo("/slash/1001/", "/buy/", "/buy/now", "/order/1001", "/slash", "/buyer")...)
	for _, c := range []struct{ target, want string }{
		{"/slash/1001", "path is not canonical: write it as POST /slash/{sku}/ does"},
		{"/order/1001/", "path is not canonical: write it as POST /order/{sku} does"},
	} {
		if a := g.raw(t, postsTo(c.target)[0]); !strings.Contains(a.body, c.want) {
			t.Errorf("%s: %s, want %q", c.target, a.body, c.want)
		}
	}
}
