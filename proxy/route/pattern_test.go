package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPattern_PartsOfAPattern(t *testing.T) {
	for _, tt := range []struct {
		text, methods, host, path string
		names                     []string
	}{
		{"/", "", "", "/", nil},
		{"POST /api/seckill/{sku}/order", "POST", "", "/api/seckill/{sku}/order", []string{"sku"}},
		{"GET|POST|PUT /buy/{sku}.html", "GET POST PUT", "", "/buy/{sku}.html", []string{"sku"}},
		{"PROPFIND   Shop.Example./a/{b}/{c...}", "PROPFIND", "shop.example", "/a/{b}/{c...}", []string{"b", "c"}},
		{"M-SEARCH localhost/", "M-SEARCH", "localhost", "/", nil},
		{"/@a/~b/c=d,e&f!'/g:h/.well-known/", "", "", "/@a/~b/c=d,e&f!'/g:h/.well-known/", nil},
	} {
		p, err := ParsePattern(tt.text)
		if err != nil || strings.Join(p.Methods(), " ") != tt.methods || p.host != tt.host || p.Path() != tt.path ||
			!slices.Equal(p.Names(), tt.names) || p.String() != tt.text {
			t.Errorf("%q: %+v, %v", tt.text, p, err)
		}
	}
}

func TestPattern_MistakeIsNamedWithItsRemedy(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `0 words: write METHOD [HOST]/PATH, such as "POST /order/{sku}"`},
		{"GET POST /a", `3 words: write "GET|POST /a"`},
		{"get, post | PUT /a", `5 words: write "GET|POST|PUT /a"`},
		{"POST /a /b", `3 words: write METHOD [HOST]/PATH`},
		{"post /a", `method "post" is in lower case: write "POST /a"`},
		{"GET,POST /a", `"GET,POST" is not a method: write "GET|POST /a"`},
		{"get|POST /a", `method "get" is in lower case: write "GET|POST /a"`},
		{"POST| /a", `a method is missing beside "|": write "POST /a"`},
		{"POST|POST /a", `method "POST" stands twice: remove one`},
		{"GET|ANY /a", `"ANY" is not a method: write none for all methods`},
		{"ANY /a", `"ANY" is not a method: write "/a"`},
		{"* /a", `"*" is not a method: write "/a"`},
		{"~ ^/a", `"~" is not a method: write "/a"`},
		{"location /a", `"location" is not a method: write "/a"`},
		{"orders/{sku}", `"orders" is not a host name: write "/orders/{sku}"`},
		{"POST orders/{sku}", `"orders" is not a host name: write "POST /orders/{sku}"`},
		{"orders", `"orders" is not a host name: write "/orders"`},
		{"GET/orders", `"GET" is not a host name: write "GET /orders"`},
		{"POST:/orders", `host "POST:" has a port: a pattern takes all ports, write it without`},
		{"shop.example", `the path is missing: write "shop.example/" for everything on this host`},
		{"http://s.example/a", `"http://" is not part of a pattern: write "s.example/a"`},
		{"shop.example:80/a", `host "shop.example:80" has a port`},
		{"*.shop.example/a", `host "*.shop.example": "*" matches nothing: write one route for each host`},
		{"shop.{tld}/a", `host "shop.{tld}": "{" is not part of a host name: remove it`},
		{"/orders/*", `"*" matches nothing: write "/orders/" for everything below, or "/orders/{name...}"`},
		{"GET /a/*", `"*" matches nothing: write "GET /a/" for everything below, or "GET /a/{name...}"`},
		{"/*", `"*" matches nothing: write "/" for everything below, or "/{name...}"`},
		{"/api/**", `"*" matches nothing: write "/api/" for everything below, or "/api/{name...}"`},
		{"POST /orders*", `"*" matches nothing: write "POST /orders/" for everything below, or "POST /orders/{name...}"`},
		{"/a/*.js", `"*" matches nothing: write "/a/{name}"`},
		{"/orders/*/pay/*/x", `"*" matches nothing: write "/orders/{name}/pay/{name2}/x"`},
		{"/orders/**/x", `"*" matches nothing: write "/orders/{name}/x"`},
		{"/orders/:id", `":id" stands for itself alone: write "/orders/{id}"`},
		{"/orders/<id>/pay", `"<id>" stands for itself alone: write "/orders/{id}/pay"`},
		{"/orders/<int:id>", `"<int:id>" stands for itself alone: write "/orders/{id}"`},
		{"/orders/$id", `regular expressions match nothing: write "/orders/{id}"`},
		{"/orders/[id]", `regular expressions match nothing: write "/orders/{id}"`},
		{"/orders/[...rest]", `regular expressions match nothing: write "/orders/{rest...}"`},
		{"/orders/{*rest}", `"*" matches nothing: write "/orders/{rest...}"`},
		{"/orders/...", `segment "..." matches nothing: remove it`},
		{"^/orders/.*$", `regular expressions match nothing: write "/orders/" for everything below`},
		{"/orders/[0-9]+", `regular expressions match nothing: write "/orders/{name}"`},
		{"/orders/([^/]+)/pay", `regular expressions match nothing: write "/orders/{name}/pay"`},
		{`/orders/\d+`, `regular expressions match nothing: write "/orders/{name}"`},
		{"/orders/{id:[0-9]+}", `regular expressions match nothing: write "/orders/{id}"`},
		{"/orders/{id:int}", `"{id:int}": a name has letters, digits and _ alone: write "/orders/{id}"`},
		{"/orders/{{id}}", `"{{id}}": a name has letters, digits and _ alone: write "/orders/{id}"`},
		{"/orders/{id?}", `"{id?}" matches nothing: write "/orders/{id}"`},
		{"/a|b", `regular expressions match nothing: write "/{name}"`},
		{"/a/(b)", `regular expressions match nothing: write "/a/{name}"`},
		{"/a?b=c", `"a?b=c" matches nothing: write "/a"`},
		{"/a%20b", `"a%20b" matches nothing: write the path decoded`},
		{"/a;b", `"a;b" matches nothing`},
		{"/商品/{sku}", `"商品" matches nothing, since paths arrive percent-encoded: write {name}`},
		{"//a", `segment "" matches nothing: remove it`},
		{"/a//", `segment "" matches nothing: remove it`},
		{"/a/../b", `segment ".." matches nothing: remove it`},
		{"/{a}-{b}", `"{a}-{b}": a segment has one {name} at most: write a slash between two, or one name for both`},
		{"/{a}{b}", `"{a}{b}": a segment has one {name} at most`},
		{"/a-{b...}", `"a-{b...}": {b...} stands for whole segments: write {b}`},
		{"/buy/:id.html", `":id.html" stands for itself alone: write "/buy/{id}.html"`},
		{"/buy/<int:id>.html", `"<int:id>.html" stands for itself alone: write "/buy/{id}.html"`},
		{"/buy/{id:int}.html", `"{id:int}.html": a name has letters, digits and _ alone: write "/buy/{id}.html"`},
		{"/{a}html", `"{a}html": what follows a name begins with a mark such as . or -: write {a} alone, or a mark between`},
		{"/a}b{", `"a}b{": a name has letters, digits and _ alone`},
		{"/{a", `"{a": a brace is open: write "/{a}"`},
		{"/{}", `"{}": a name has letters, digits and _ alone: write one such as {sku}`},
		{"/{", `"{": a brace is open`},
		{"/{a-b}", `"{a-b}": a name has letters`},
		{"/{a...}/b", `"{a...}" stands before the end: write {a} for one segment`},
		{"/{a...}/", `"{a...}" stands before the end`},
		{"/{a}/x/{a}", `{a} stands twice: give each segment a name of its own`},
		{"/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}", `9 {names} in 9 segments: write at most 8 in 32`},
		{strings.Repeat("/a", 33), `0 {names} in 33 segments: write at most 8 in 32`},
	} {
		_, err := ParsePattern(tt.text)
		if want := fmt.Sprintf("%q: %s", tt.text, tt.want); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// A pattern that is accepted takes the path that it spells, and its covering is no broader than its matching.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"POST /api/{sku}/order", "/", "GET s.example/a/{b}/{c...}", "/{a", "X /", "/a//b", "GET|PUT /x-{a}.html"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			if s := suggest(text); s != "" {
				if _, err := ParsePattern(s); err != nil {
					t.Errorf("%q suggests %q: %v", text, s, err)
				}
			}
			return
		}
		path := strings.NewReplacer("{", "v", "}", "").Replace(p.Path())
		e := &NewTable([]Pattern{p}, []Guard{GuardsStock}).entries[0]
		var captures [maxCaptures][]byte
		if method := strings.Join(p.Methods()[:min(1, len(p.Methods()))], ""); !e.takesMethod([]byte(method)) || !e.takesPath([]byte(path), &captures) || !e.covers(&p) {
			t.Errorf("%q does not take %s", text, path)
		}
		if !e.couldTake([]byte(path)) || !e.couldTake([]byte(strings.ToUpper(path))) {
			t.Errorf("%q could not take %s", text, path)
		}
	})
}
