package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// elsewhere is a route that finds SKU and user in the query and in a header, and one that reads the body.
const elsewhere = routes + `
[[route]]
name = "query"
match = "POST /query"
gate = "check"
sku = "$arg_sku"
user = "$http_x_user"

[[route]]
name = "json"
match = "POST /json"
gate = "check"
sku = "$json_items.0.id"
user = "$json_user"
`

// reordered puts the order routes before the one that takes everything.
func reordered() string {
	const rest = "\n[[route]]\nname = \"everything-else\"\nmatch = \"/\"\ngate = \"pass\"\n"
	return strings.Replace(elsewhere, rest, "", 1) + rest
}

func TestIdentity_OrderWithoutSKUOrUserIsNotForwarded(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), reordered())
	const uid, user = "Cookie: uid=7", "X-User: 7"
	json := func(body string) string {
		return fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	for _, c := range []struct{ name, target, rest string }{
		{"no user", "/api/seckill/1001/order", "Accept: */*"},
		{"another cookie", "/api/seckill/1001/order", "Cookie: uidd=7"},
		{"empty user", "/api/seckill/1001/order", "Cookie: uid="},
		{"user too long", "/api/seckill/1001/order", "Cookie: uid=" + strings.Repeat("7", 257)},
		{"two users", "/api/seckill/1001/order", "Cookie: uid=7; uid=8"},
		{"control character", "/api/seckill/10%0101/order", uid},
		{"delete", "/api/seckill/10%7f01/order", uid},
		{"space", "/api/seckill/10%2001/order", uid},
		{"opening brace", "/api/seckill/%7B1001/order", uid},
		{"closing brace", "/api/seckill/1001%7d/order", uid},
		{"braces", "/api/seckill/{1001}/order", uid},
		{"129 bytes", "/api/seckill/" + strings.Repeat("1", 129) + "/order", uid},
		{"line end", "/api/seckill/10%0d%0a01/order", uid},
		{"query without SKU", "/query?skus=1001", user},
		{"query with empty SKU", "/query?sku=", user},
		{"query with two SKUs", "/query?sku=1001&sku=1002", user},
		{"query with a brace", "/query?sku=%7b1001", user},
		{"query with a plus for a space", "/query?sku=10+01", user},
		{"query without user", "/query?sku=1001", uid},
		{"body without SKU", "/json", json(`{"user":"7","items":[]}`)},
		{"body without user", "/json", json(`{"items":[{"id":1001}]}`)},
		{"body with two SKUs", "/json", json(`{"user":"7","items":[{"id":1001,"id":1002}]}`)},
		{"body with a brace", "/json", json(`{"user":"7","items":[{"id":"{1001}"}]}`)},
		{"body that is no JSON", "/json", json(`sku=1001`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			status := 400
			if slices.Contains([]string{"no user", "another cookie", "empty user", "query without user", "body without user"},
				c.name) {
				status = 401
			}
			if a := g.raw(t, complete("POST", c.target, c.rest)); a.status != status || a.reason == "" {
				t.Errorf("answered %d %q, want %d and a reason: %s", a.status, a.reason, status, a.body)
			}
		})
	}
	t.Run("broken escape", func(t *testing.T) {
		g.raw(t, complete("POST", "/api/seckill/10%zz01/order", uid)).must(t, 400, "ambiguous")
	})
	if n := shop.arrivals.Load(); n != 0 {
		t.Errorf("%d of these orders reached the shop", n)
	}
	for _, text := range []string{
		complete("POST", "/api/seckill/1001/order", uid),
		complete("POST", "/query?sku=1001", user),
		complete("POST", "/json", json(`{"user":"7","items":[{"id":1001}]}`)),
	} {
		g.raw(t, text).must(t, 200, "")
	}
}

// complete makes a request of a method, a target and more lines, the body included where there is one.
func complete(method, target, rest string) string {
	if !strings.Contains(rest, "\r\n\r\n") {
		rest += "\r\nContent-Length: 0\r\n\r\n"
	}
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: shop\r\n%s", method, target, rest)
}
