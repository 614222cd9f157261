package proxy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// Each of these is an order to some router: one that decodes once, ignores letter case, follows RFC 3986 to the letter,
// cuts parameters or does not, or takes an extension for a format.
func TestPathThatSomeRouterReadsAsAnOrderIsNotPassed(t *testing.T) {
	routes := []Route{
		{Name: "order", Match: "POST /order/{sku}", Gate: Check, SKU: "$path_sku"},
		{Name: "basket", Match: "POST /shop/{shop}/order", Gate: Limit},
		{Name: "buy", Match: "POST /buy", Gate: Limit},
		{Name: "rest", Match: "/", Gate: Pass},
	}
	for _, path := range []string{
		"/order//../1",                 // RFC 3986: an empty segment is one
		"/order/;/../1",                // ";" is a name like any other
		"/order/%5c/../1",              // so is "\"
		"/static/%3f/../../order/1",    // a decoded "?" does not end a path
		"/static/%23/../../order/1",    // nor does "#"
		"/static/%2e%2e/order/1%2fx/y", // dots resolved, the slash kept
		"/Order/1%2fx",                 // letter case alone, then decoded by the handler
		"/%6frder/1%2fx",
		"/%6frder/1%252fx",
		"/%6frder/1%3fx/y",
		"/Shop/;/order",
		"/Shop/./order",
		"/Shop/%5c/order",
		"/Shop/a%3fb/order",
		"/buy.json", "/buy.html", "/Buy.JSON", "/%62uy.json", // a format: Rails, Spring MVC before 5.3
		"/index.php/order/1", "/index.php/buy", "/a/Index.PHP/buy.json", "/index.php//buy", "/index%2ephp/buy", "/a.b/x.php/buy", // what PHP calls PATH_INFO
		"/buy.", "/buy%20", "/buy/.", "/buy..", "/buy.;x", // Windows drops them
	} {
		shop := &seen{}
		o := options(shop)
		o.Routes = routes
		addr, _ := gate(t, o)
		resp, _ := talk(t, addr, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n", path))
		if reason := resp.Header.Get("X-Sluice-Reason"); reason != "ambiguous" || len(shop.all()) > 0 {
			t.Errorf("%s: %d %s, shop saw %q", path, resp.StatusCode, reason, shop.all())
		}
	}
}

func TestPathThatNobodyTakesForAnOrderPasses(t *testing.T) {
	for _, target := range []string{
		"GET /buy.css", "GET /buy.js", "POST /upload.php", "GET /", "GET /search/%E4%B8%AD%E6%96%87", "GET /a%2fb", "GET /a;jsessionid=1", "GET /a//b", "GET /A/",
		"GET /a...b", "GET /.well-known/x", "GET /x?next=/../y", "POST /order/A.1", "POST /order/A-1%2D", "POST /a.b/c", "POST /index.php/a", "POST /index.php", "POST /order/x.php", "GET /index.php/", "POST /a.phpx/buy",
	} {
		shop := &seen{}
		o := options(shop)
		o.Routes = []Route{
			{Name: "order", Match: "POST /order/{sku}", Gate: Check, SKU: "$path_sku"},
			{Name: "buy", Match: "/buy", Gate: Limit},
			{Name: "rest", Match: "/", Gate: Pass},
		}
		addr, _ := gate(t, o)
		resp, _ := talk(t, addr, target+" HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n")
		if resp.StatusCode != 200 || len(shop.all()) != 1 {
			t.Errorf("%s: %d %s", target, resp.StatusCode, resp.Header.Get("X-Sluice-Reason"))
		}
	}
}

// Between the request's own route and the one that it comes to there may be another, and its own may have limits.
func TestEndingIsOverlookedOnWhateverRouteItStands(t *testing.T) {
	for _, tt := range []struct{ request, want string }{
		{"POST /%73hop/buy.json", "ambiguous"},
		{"POST /Shop/buy.json", "ambiguous"},
		{"POST /SHOP/index.php/shop/buy", "ambiguous"},
		{"POST /slow/buy.json", "ambiguous"},
		{"POST /slow/index.php/slow/buy", "ambiguous"},
		{"POST /slow/a.json", ""},
		{"POST /slow/page.json", ""}, // limits as well
		{"POST /slow/free.json", ""}, // of a page without any
		{"GET /slow/buy.json", ""},
		{"PATCH /slow/buy.json HTTP/1.1\r\nX-HTTP-Method-Override: POST", "ambiguous"},
	} {
		shop := &seen{}
		o := options(shop)
		o.Routes = []Route{
			{Name: "buy", Match: "POST /shop/buy", Gate: Check, SKU: "A"},
			{Name: "slow buy", Match: "POST /slow/buy", Gate: Check, SKU: "A"},
			{Name: "page", Match: "POST /slow/page", Gate: Limit},
			{Name: "free", Match: "POST /slow/free", Gate: Pass},
			{Name: "slow", Match: "/slow/", Gate: Limit},
			{Name: "shop", Match: "/shop/", Gate: Pass},
			{Name: "rest", Match: "/", Gate: Pass},
		}
		addr, _ := gate(t, o)
		line, field, _ := strings.Cut(tt.request, " HTTP/1.1")
		resp, _ := talk(t, addr, line+" HTTP/1.1\r\nHost: s"+field+"\r\nContent-Length: 0\r\n\r\n")
		if got := resp.Header.Get("X-Sluice-Reason"); got != tt.want || (got == "") != (len(shop.all()) == 1) {
			t.Errorf("%q: %d %q, want %q", tt.request, resp.StatusCode, got, tt.want)
		}
	}
}

// A shop all of whose addresses lead through its script has routes that say so.
func TestRouteThroughAScriptIsARoute(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	o.Routes = []Route{
		{Name: "order", Match: "POST /order/{sku}", Gate: Check, SKU: "$path_sku"},
		{Name: "by script", Match: "POST /index.php/order/{sku}", Gate: Check, SKU: "$path_sku"},
		{Name: "rest", Match: "/", Gate: Pass},
	}
	addr, _ := gate(t, o)
	if resp, _ := talk(t, addr, "POST /index.php/order/A HTTP/1.1\r\nHost: s\r\nContent-Length: 0\r\n\r\n"); resp.StatusCode != 200 || len(shop.all()) != 1 {
		t.Errorf("%d %s", resp.StatusCode, resp.Header.Get("X-Sluice-Reason"))
	}
}

// What is passed over, since no slash is escaped, would have shown nothing new.
func TestNoReadingIsPassedOver(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", "B", "/", "/", ".", ";", "\\", "?", "#", "%2f", "%2F", "%252f", "%25252f", "%25", "25", "2f", "%41", "%3b", "%253f", "%", "%2"}
	both := 0
	for range 20_000 {
		path := "/"
		for range dice.IntN(8) {
			path += parts[dice.IntN(len(parts))]
		}
		got, want := map[string]bool{}, map[string]bool{}
		known := (&request{}).eachReading([]byte(path), func(p []byte, _ int) bool { got[string(p)] = true; return true })
		whole := everyReading([]byte(path), want)
		if known != whole || known && !maps.Equal(got, want) {
			t.Fatalf("%s: %v, %v; want %v, %v", path, known, got, whole, want)
		}
		if known && len(want) > 1 {
			both++
		}
	}
	if both < 5000 {
		t.Errorf("only %d paths had more than one reading: nothing was tried", both)
	}
}

// everyReading is eachReading without a shortcut.
func everyReading(path []byte, see map[string]bool) bool {
	for _, slash := range []bool{true, false} {
		base := append([]byte(nil), path...)
		for range 1 + maxDecoded {
			all := waysOf(base)
			if climbs(base) {
				return false
			}
			for w := range all + 1 {
				if w&^all == 0 {
					see[string(w.read(nil, base))] = true
				}
			}
			base, _ = unescapeBut(base, slash)
		}
	}
	return true
}
