package proxy

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"sluice/proxy/param/paramtest"
	"sluice/proxy/reject"
	"sluice/proxy/route"
)

// gatedRoutes find their SKU in each place that readers disagree about.
var gatedRoutes = []Route{
	{Name: "order", Match: "POST /order/{sku}", Gate: route.Check, SKU: "$path_sku", User: "$cookie_user_id"},
	{Name: "slash", Match: "POST /slash/{sku}/", Gate: route.Check, SKU: "$path_sku", User: "$cookie_user_id"},
	{Name: "form", Match: "POST /form", Gate: route.Check, SKU: "$form_goods_id", User: "$cookie_user_id"},
	{Name: "arg", Match: "POST /arg", Gate: route.Check, SKU: "$arg_goods_id", User: "$cookie_user_id"},
	{Name: "rest", Match: "/", Gate: route.Pass},
}

// readOrder is the order that a shop finds in a request; name is that of its route, "" = it finds none.
func (s *shopReader) readOrder(target, form, cookies string) (name, sku, user string) {
	path, ok := s.path(target)
	if !ok {
		return "", "", ""
	}
	path = strings.TrimSuffix(path, "/") // routers ignore it
	_, query, _ := strings.Cut(target, "?")
	switch {
	case path == "/form" || path == "/arg":
		name, sku = path[1:], s.values(query, form)["goods_id"]
	case strings.Count(path, "/") == 2:
		first, last, _ := strings.Cut(path[1:], "/")
		if first == "order" || first == "slash" {
			name, sku = first, last
		}
	}
	if sku == "" {
		return "", "", ""
	}
	return name, sku, s.cookie(cookies)
}

// No request that a shop reads as an order passes by its gate, or for another SKU or user. A proxy that asks about it,
// and keeps the body, is told to forward none that would be rejected here.
func FuzzReaders(f *testing.F) {
	for _, row := range paramtest.Readings {
		switch row.Kind {
		case paramtest.Target, paramtest.Slash:
			f.Add(row.Input, "", "user_id=7")
			f.Add(strings.Replace(row.Input, "/order/7", "/slash/7", 1), "", "user_id=7")
		case paramtest.Name:
			f.Add("/form", "goods_id=1&"+row.Input, "user_id=7")
			f.Add("/form", row.Input, "user_id=7")
			f.Add("/arg?goods_id=1&"+row.Input, "", "user_id=7")
		case paramtest.CookieName:
			f.Add("/order/7", "", "user_id=7; "+strings.Replace(row.Input, "goods", "user", 1))
			f.Add("/order/7", "", strings.Replace(row.Input, "goods", "user", 1))
		case paramtest.Place:
			query, form, _ := strings.Cut(row.Input, "\n")
			f.Add("/form?"+query, form, "user_id=7")
			f.Add("/arg?"+query, form, "user_id=7")
		}
	}
	o := options(&recorder{})
	o.Routes = gatedRoutes
	p, err := New(o)
	if err != nil {
		f.Fatal(err)
	}
	peer := netip.MustParseAddr("203.0.113.9")
	f.Fuzz(func(t *testing.T, target, form, cookies string) {
		if strings.ContainsAny(target, "\r\n ") || strings.ContainsAny(cookies, "\r\n") {
			return // another request line or field
		}
		raw := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: shop\r\nCookie: %s\r\nContent-Length: %d\r\n", target, cookies,
			len(form))
		kind := ""
		if form != "" {
			kind = "Content-Type: application/x-www-form-urlencoded\r\n"
		}
		found := p.Explain(raw+kind+"\r\n"+form, peer, 32<<10, false)
		if found.Reason != reject.Admitted && strings.TrimSpace(target) == target &&
			askedReason(t, p, "caddy", "POST", target, "Cookie: "+cookies+"\r\n"+kind) == "" {
			t.Fatalf("%s, %q, Cookie: %s: rejected for %s, but not if a proxy asks", target, form, cookies, found.Reason)
		}
		if found.Reason != reject.Admitted || !strings.HasPrefix(target, "/") {
			return // rejected, or in absolute form, of which the shop sees the path
		}
		for i := range shopReaders {
			shop := &shopReaders[i]
			name, sku, user := shop.readOrder(target, form, cookies)
			if name == "" {
				continue
			}
			user = strings.ReplaceAll(user, " ", "+")
			if found.Route != name || found.SKU != sku || user != "" && found.User != user {
				t.Fatalf("%s, %q, Cookie: %s: forwarded by route %q for SKU %q and user %q; %s reads %q, %q, %q", target, form,
					cookies, found.Route, found.SKU, found.User, shop.name, name, sku, user)
			}
		}
	})
}
