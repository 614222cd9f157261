package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPattern_PartsOfAPattern(t *testing.T) {
	for _, tt := range []struct {
		text, method, host, path string
		names                    []string
	}{
		{"/", "", "", "/", nil},
		{"POST /api/seckill/{sku}/order", "POST", "", "/api/seckill/{sku}/order", []string{"sku"}},
		{"PROPFIND   Shop.Example./a/{b}/{c...}", "PROPFIND", "shop.example", "/a/{b}/{c...}", []string{"b", "c"}},
		{"M-SEARCH localhost/", "M-SEARCH", "localhost", "/", nil},
		{"/@a/~b/c=d,e&f!'/g:h/.well-known/", "", "", "/@a/~b/c=d,e&f!'/g:h/.well-known/", nil},
	} {
		p, err := ParsePattern(tt.text)
		if err != nil || p.Method() != tt.method || p.host != tt.host || p.Path() != tt.path ||
			!slices.Equal(p.Names(), tt.names) || p.String() != tt.text {
			t.Errorf("%q: %+v, %v", tt.text, p, err)
		}
	}
}

func TestPattern_MistakeIsNamedWithItsRemedy(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `0 words: write METHOD [HOST]/PATH, such as "POST /order/{sku}"`},
		{"GET POST /a", `3 words: write METHOD [HOST]/PATH`},
		{"post /a", `method "post" is in lower case: write "POST"`},
		{"GET,POST /a", `"GET,POST" is not a method: write one such as POST, or none for all`},
		{"~ /a", `"~" is not a method`},
		{"orders/{sku}", `"orders" is not a host name: write "/orders/{sku}"`},
		{"POST orders/{sku}", `"orders" is not a host name: write "POST /orders/{sku}"`},
		{"orders", `"orders" is not a host name: write "/orders"`},
		{"shop.example", `the path is missing: write "shop.example/" for everything on this host`},
		{"http://s.example/a", `"http://" is not part of a pattern: write the host alone, such as "s.example/a"`},
		{"shop.example:80/a", `host "shop.example:80" has a port`},
		{"*.shop.example/a", `host "*.shop.example": "*" matches nothing: write one route for each host`},
		{"shop.{tld}/a", `host "shop.{tld}": "{" is not part of a host name: remove it`},
		{"/orders/*", `"*" matches nothing: write "/orders/" for everything below, or "/orders/{name...}"`},
		{"GET /a/*", `"*" matches nothing: write "GET /a/" for everything below, or "GET /a/{name...}"`},
		{"/*", `"*" matches nothing: write "/" for everything below, or "/{name...}"`},
		{"/a/*.js", `"*" matches nothing: write {name} for the whole segment`},
		{"/orders/*/pay", `"*" matches nothing: write {name} for the whole segment`},
		{"/orders/:id", `":id" stands for itself alone: write {id}`},
		{"/orders/<id>/pay", `"<id>" stands for itself alone: write {id}`},
		{"^/orders/.*$", `regular expressions match nothing: write {name} for a segment`},
		{"/orders/{id:[0-9]+}", `regular expressions match nothing`},
		{"/a|b", `regular expressions match nothing`},
		{"/a/(b)", `regular expressions match nothing`},
		{"/a?b=c", `"a?b=c" matches nothing: write the path decoded, without parameters and query`},
		{"/a%20b", `"a%20b" matches nothing: write the path decoded`},
		{"/a;b", `"a;b" matches nothing`},
		{"/商品/{sku}", `"商品" matches nothing, since paths arrive percent-encoded: write {name}`},
		{"//a", `segment "" matches nothing: remove it`},
		{"/a//", `segment "" matches nothing: remove it`},
		{"/a/../b", `segment ".." matches nothing: remove it`},
		{"/a-{b}", `"a-{b}": a {name} is a whole segment: write it between slashes`},
		{"/{a}{b}", `"{a}{b}": a name has letters, digits and _ alone`},
		{"/{a", `"{a": a {name} is a whole segment`},
		{"/{}", `"{}": a name has letters, digits and _ alone: write one such as {sku}`},
		{"/{", `"{": a {name} is a whole segment`},
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
	for _, text := range []string{"POST /api/{sku}/order", "/", "GET s.example/a/{b}/{c...}", "/{a", "X /", "/a//b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		path := strings.NewReplacer("{", "v", "}", "").Replace(p.Path())
		e := &NewTable([]Pattern{p}, []Gate{Check}).entries[0]
		var captures [MaxCaptures][]byte
		if !e.takesMethod([]byte(p.Method())) || !e.takesPath([]byte(path), &captures) || !e.covers(&p) {
			t.Errorf("%q does not take %s", text, path)
		}
		if !e.couldTake([]byte(path)) || !e.couldTake([]byte(strings.ToUpper(path))) {
			t.Errorf("%q could not take %s", text, path)
		}
	})
}
