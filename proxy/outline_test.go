package proxy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// tableOf makes a Proxy of patterns that are right, and passes over the others.
func tableOf(patterns []string) *Proxy {
	p := &Proxy{noRoute: route{Route: Route{Name: noRouteName}}}
	for _, text := range patterns {
		if compiled, err := parsePattern(text); err == nil {
			p.routes = append(p.routes, route{Route: Route{Name: text}, pattern: compiled})
		}
	}
	p.outlines = outlinesOf(p.routes)
	return p
}

// plainly is find without outlines.
func (p *Proxy) plainly(method, path []byte, r *request, fold bool) *route {
	for i := range p.routes {
		if p.routes[i].pattern.matches(method, r.host, path, &r.caught, fold) {
			return &p.routes[i]
		}
	}
	return &p.noRoute
}

// agree compares find with the plain comparison of all patterns, strictly and as lenient shops do.
func agree(t *testing.T, p *Proxy, method, host, path string) {
	t.Helper()
	for _, fold := range []bool{false, true} {
		found, plain := &request{host: []byte(host)}, &request{host: []byte(host)}
		got, want := p.find([]byte(method), []byte(path), found, fold), p.plainly([]byte(method), []byte(path), plain, fold)
		if got != want {
			t.Fatalf("%s %s%s, fold %v: %q, want %q", method, host, path, fold, got.Name, want.Name)
		}
		for i, name := range want.pattern.names {
			if string(found.caught[i]) != string(plain.caught[i]) {
				t.Fatalf("%s %s%s, fold %v: {%s} of %q is %q, want %q", method, host, path, fold, name, want.Name, found.caught[i], plain.caught[i])
			}
		}
	}
}

func TestOutlinesNeverChangeWhoTakesARequest(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[dice.IntN(len(of))] }
	taken := 0
	for range 2000 {
		var table []string
		for range dice.IntN(40) {
			text := one("", "GET ", "POST ", "HEAD ") + one("", "", "", "shop.example", "Other.Example", "shop")
			for i := range dice.IntN(8) {
				text += "/" + one("a", "A", "b", "item", "Item", "order-1", "order-2", "-", "@", "`", "é", fmt.Sprintf("{n%d}", i), fmt.Sprintf("{n%d}", i))
			}
			table = append(table, text+one("", "", "/", "/{rest...}"))
		}
		p := tableOf(append(table, "/"))
		for range 40 {
			path := one("/", "/", "/", "/", "", "//", "*", "a", "a/")
			for range dice.IntN(8) {
				path += one("a", "A", "b", "item", "ITEM", "order-1", "Order-2", "order-3", "-", "@", "`", "é", "É", "", ".", "%61", "x") + one("/", "/", "/", "/", "", "//")
			}
			method, host := one("GET", "HEAD", "POST", "PUT", "get", ""), one("", "shop.example", "other.example", "shop", "SHOP", "[::1]")
			agree(t, p, method, host, path)
			if p.find([]byte(method), []byte(path), &request{host: []byte(host)}, false) != &p.routes[len(p.routes)-1] {
				taken++
			}
		}
	}
	if taken < 5000 {
		t.Errorf("only %d requests were taken by more than the last route: nothing was tried", taken)
	}
}

func FuzzOutlines(f *testing.F) {
	table := "POST /api/seckill/{sku}/order\nGET shop.example/a/{b}/{c...}\nHEAD /a\n/a/\n/{x}\n/Item/1/2/3/4/5/6/7/8\n/"
	for _, path := range []string{"/", "", "*", "//", "/a", "/A/", "/a/b/c/d", "/api/seckill/1/order/", "/item/1/2/3/4/5/6/7/8/9", "a", "/é"} {
		f.Add(table, "GET", "shop.example", path)
	}
	f.Fuzz(func(t *testing.T, table, method, host, path string) {
		agree(t, tableOf(strings.Split(table, "\n")), method, host, path)
	})
}

// crowdedTables are those of a hundred routes and more, by what tells the routes apart.
var crowdedTables = map[string]string{
	"first segment":  "POST /order-%d/{sku}/order",
	"third segment":  "GET /api/v1/goods-%d/{id}",
	"behind a name":  "/shop/{shop}/order-%d",
	"number":         "/item/%d",
	"host":           "shop-%d.example/buy/{sku}",
	"the only route": "/",
}

// crowded is a table of n routes with a page behind them, and a request for each.
func crowded(text string, n int) (p *Proxy, hosts, paths [][]byte) {
	var table []string
	for i := range n {
		pattern := strings.Replace(text, "%d", fmt.Sprint(i), 1)
		table = append(table, pattern)
		target := pattern[strings.IndexByte(pattern, ' ')+1:]
		slash := strings.IndexByte(target, '/')
		hosts = append(hosts, []byte(target[:slash]))
		paths = append(paths, []byte(strings.NewReplacer("{sku}", "1001", "{id}", "7", "{shop}", "3").Replace(target[slash:])))
	}
	return tableOf(append(table, "/")), hosts, paths
}

func TestOutlinesPassOverMostRoutes(t *testing.T) {
	for name, text := range crowdedTables {
		p, hosts, paths := crowded(text, 100)
		fits := 0
		for i, path := range paths {
			seen := p.outlines.seen(hosts[i], path)
			fits += len(slices.DeleteFunc(slices.Clone(p.outlines.row), func(o outline) bool { return !o.fits(seen) }))
		}
		if name != "the only route" && fits > 250 { // of each hundred its own, the page, and what has the same hash
			t.Errorf("%s: %d routes fit a hundred requests", name, fits)
		}
	}
}

// A path can be one segment of 8 KiB, and is compared in dozens of readings.
func TestOutlinesReadNoLongNameToItsEnd(t *testing.T) {
	long := strings.Repeat("x", maxTarget)
	if hashed(long+"a") != hashed(long+"b") {
		t.Error("the end of a long name counts")
	}
}

func BenchmarkFind(b *testing.B) {
	for name, text := range crowdedTables {
		for _, n := range []int{1, 10, 100, 1000} {
			if name == "the only route" && n > 1 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				p, hosts, paths := crowded(text, n)
				r, i, method := &request{}, 0, []byte("POST")
				if strings.HasPrefix(text, "GET") {
					method = []byte("GET")
				}
				b.ReportAllocs()
				for b.Loop() {
					i = (i + 37) % n
					r.host = hosts[i]
					if p.find(method, paths[i], r, false) != &p.routes[i] {
						b.Fatalf("%s%s is taken by another route", hosts[i], paths[i])
					}
				}
			})
		}
	}
}
