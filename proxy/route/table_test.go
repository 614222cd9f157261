package route

import (
	"strings"
	"testing"

	"sluice/proxy/reject"
)

// match is Table.Match of "METHOD [HOST]/PATH". The result is the pattern, or "" for none, and its captures.
func match(table *Table, request string) (pattern string, captures []string, cause reject.Cause) {
	method, target, _ := strings.Cut(request, " ")
	host, path := "", target
	if slash := strings.IndexByte(target, '/'); slash > 0 {
		host, path = target[:slash], target[slash:]
	}
	m, detail := table.Match(Query{Method: []byte(method), Host: []byte(host), Path: []byte(path)})
	if m.Index < 0 {
		return "", nil, detail.Cause
	}
	for i := range table.entries[m.Index].names {
		captures = append(captures, string(m.Captures[i]))
	}
	return table.entries[m.Index].text, captures, detail.Cause
}

func TestTable_FirstRouteThatTakesARequest(t *testing.T) {
	table := tableOf(t,
		"POST /order/{sku}", "shop.example/a/{b}/c/{d...}", "GET /page", "PURGE /page", "/files/", "/{x}")
	for request, want := range map[string]string{
		"POST /order/1":                 "POST /order/{sku} 1",
		"post /order/1":                 "POST /order/{sku} 1", // servers write methods in capitals
		"PUT /order/1":                  "",
		"POST /order/1/":                "",
		"POST /order/":                  "",
		"POST /order":                   "/{x} order",
		"POST /Order/1":                 "",
		"POST /order/a%2fB":             "POST /order/{sku} a%2fB",
		"GET shop.example/a/1/c/2/3":    "shop.example/a/{b}/c/{d...} 1 2/3",
		"GET shop.example/a/1/c/":       "shop.example/a/{b}/c/{d...} 1 ",
		"GET shop.example/a/1/c":        "",
		"GET shop.example/a//c/2":       "",
		"GET other.example/a/1/c/2":     "",
		"HEAD /page":                    "GET /page",
		"PURGE /page":                   "PURGE /page",
		"POST /page":                    "/{x} page",
		"GET /files/":                   "/files/",
		"GET /files/x//..;y":            "/files/",
		"GET /files":                    "/{x} files",
		"OPTIONS *":                     "",
		"GET /":                         "",
		"GET /a/b/c/d/e/f/g/h/i/j/k/l/": "",
	} {
		pattern, captures, cause := match(table, request)
		if got := strings.Join(append([]string{pattern}, captures...), " "); got != want || cause != 0 {
			t.Errorf("%s: %q %v, want %q", request, got, cause, want)
		}
	}
}

func TestTable_LiteralsBesideAName(t *testing.T) {
	table := tableOf(t, "GET|POST /buy/{sku}.html", "/item-{id}/x", "/v{a}-b/{c...}", "/{x}/{y}")
	for request, want := range map[string]string{
		"POST /buy/1001.html":      "GET|POST /buy/{sku}.html 1001",
		"HEAD /buy/a.b.html":       "GET|POST /buy/{sku}.html a.b",
		"GET /buy/.html.html":      "GET|POST /buy/{sku}.html .html",
		"PUT /buy/1001.html":       "/{x}/{y} buy 1001.html",
		"POST /buy/.html":          "/{x}/{y} buy .html",
		"POST /buy/1001.htm":       "/{x}/{y} buy 1001.htm",
		"POST /buy/1001.HTML":      "/{x}/{y} buy 1001.HTML",
		"POST /buy/1001.html/":     "",
		"GET /item-7/x":            "/item-{id}/x 7",
		"GET /item-/x":             "/{x}/{y} item- x",
		"GET /item/x":              "/{x}/{y} item x",
		"GET /v1-b/":               "/v{a}-b/{c...} 1 ",
		"GET /v-b/1":               "/{x}/{y} v-b 1",
		"GET /vx-b-b/1":            "/v{a}-b/{c...} x-b 1",
		"OPTIONS /buy/1001.html/x": "",
	} {
		pattern, captures, cause := match(table, request)
		if got := strings.Join(append([]string{pattern}, captures...), " "); got != want || cause != 0 {
			t.Errorf("%s: %q %v, want %q", request, got, cause, want)
		}
	}
}

// Each of these is an order to some server that decodes, ignores case, or drops what it does not need.
func TestTable_LiteralsBesideANameAreFoundInEveryReading(t *testing.T) {
	const order, item = "POST /buy/{sku}.html", "PUT|POST /item-{id}/buy"
	table := tableOf(t, "!"+order, "!"+item, "/")
	for path, want := range map[string]string{
		"/buy/1%2ehtml":          order,
		"/buy/1.HTML":            order,
		"/Buy/1.html":            order,
		"/buy//1.html":           order,
		"/buy/1.html/":           order,
		"/buy/1.html;x=1":        order,
		"/buy/a%2fb.html":        order,
		"/buy/a%2f.html":         order,
		"/buy%2f1.html":          order,
		"/buy/1.html%3fx":        order,
		"/x/../buy/1.html":       order,
		"/buy/%2e%2e/buy/1.html": order,
		"/ITEM-7/buy":            item,
		"/item%2d7/buy":          item,
		"/item-7/buy/":           item,
		"/item-7;x/buy":          item,
		"/item-a%2fb/buy":        item,
		"/item-%2fb/buy":         item,
		"/./item-7/buy":          item,
		"/%C4%B1tem-7/buy":       item, // ı, which equalsIgnoreCase of Java takes for i
		"/buy/1.htmL":            order,
		// These are none in any reading.
		"/buy/%C4%B1":     "/",
		"/buy/1.HTM":      "/",
		"/buy/.html/":     "/",
		"/Buy/1.html/x":   "/",
		"/buy/1.htm%6c.x": "/",
		"/Item7/buy":      "/",
		"/item-;/buyer":   "/",
		"/buy/1.htm/l/":   "/",
		"/buy/html%2f1.":  "/",
		"/buy%2f.htmlx/":  "/",
	} {
		pattern, _, cause := match(table, "POST "+path)
		if pattern != want && pattern != "!"+want || (cause == reject.PathNotCanonical) != (want != "/") {
			t.Errorf("%s: %q %v, want %q", path, pattern, cause, want)
		}
	}
	for path, want := range map[string]string{"/buy/1.html": "", "/buy/%31.html": "", "/item-7/buy": ""} {
		if pattern, _, cause := match(table, "POST "+path); cause != 0 || pattern == "/" {
			t.Errorf("%s: %q %v, want %q", path, pattern, cause, want)
		}
	}
}

// toLowerCase of JavaScript makes a k of the Kelvin sign, and equalsIgnoreCase of Java an s of the long s.
func TestTable_LettersOfOtherCaseNeedNotBeASCII(t *testing.T) {
	const order = "POST /seckill/{sku}/buy"
	table := tableOf(t, "!"+order, "/")
	for path, want := range map[string]string{
		"/sec%E2%84%AAill/1/buy":       order,
		"/%C5%BFeckill/1/buy":          order,
		"/seck%C4%B0ll/1/buy":          order,
		"/%C5%BFec%E2%84%AAill/1/buy/": order,
		"/sec%E2%84%ABill/1/buy":       "/",
		"/seckill/1/bu%E2%84":          "/",
		"/seckıll/1/buyer":             "/",
	} {
		pattern, _, cause := match(table, "POST "+path)
		if (cause == reject.PathNotCanonical) != (want == order) || want == "/" && pattern != "/" {
			t.Errorf("%s: %q %v, want %q", path, pattern, cause, want)
		}
	}
}

func TestTable_LiteralsBesideANameDoNotAllocate(t *testing.T) {
	table := tableOf(t, "!POST /buy/{sku}.html", "/")
	q := Query{Method: []byte("POST"), Path: []byte("/buy/%31.html")}
	if n := testing.AllocsPerRun(100, func() { table.Match(q) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTable_EarlierRouteCovers(t *testing.T) {
	for _, tt := range []struct {
		routes string
		want   int // the route that covers the last one
	}{
		{"/, /a", 0}, {"/a, /", -1}, {"/a/, /a/{b}", 0}, {"/a/, /a", -1}, {"/a/{b...}, /a/", 0}, {"/a/, /a/{b...}", 0},
		{"/{a}, /b", 0}, {"/b, /{a}", -1}, {"/x, /{a}/{b}, /c/{d}", 1}, {"/{a}/, /b/c/d", 0}, {"/{a}, /b/", -1},
		{"POST /a, /a", -1}, {"/a, POST /a", 0}, {"GET /a, POST /a", -1}, {"a.example/, /a", -1}, {"/, a.example/", 0},
		{"/{a}, /{b}.html", 0}, {"/{b}.html, /{a}", -1}, {"/{b}.html, /x.html", 0}, {"/{b}.html, /.html", -1},
		{"/{a}.l, /{b}.html.l", 0}, {"/{a}.l, /{b}.html", -1}, {"/x-{a}, /{b}", -1}, {"/x-{a}, /x-y-{b}", 0}, {"GET|POST /a, POST /a", 0},
		{"GET|POST /a, POST|PUT /a", -1}, {"GET|POST /a, /a", -1}, {"POST /a, GET|POST /a", -1},
		{"POST|PUT|GET /a, GET|POST /a", 0},
	} {
		texts := strings.Split(tt.routes, ", ")
		if got := tableOf(t, texts...).CoveredBy(len(texts) - 1); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.routes, got, tt.want)
		}
	}
}

// Each of these is an order to some server.
func TestTable_PathThatSomeServerReadsAsAnOrderIsAmbiguous(t *testing.T) {
	const order, basket, buy = "POST /order/{sku}", "POST /shop/{shop}/order", "POST /buy"
	table := tableOf(t, "/cart/{id}", "!"+order, "!"+basket, "!"+buy, "/static/", "/")
	for path, want := range map[string]string{
		"/order//../1":                     order, // RFC 3986: an empty segment is one
		"/order/;/../1":                    order, // ";" is a name like any other
		"/static/%3f/../../order/1":        order, // a decoded "?" does not end a path
		"/static/%2e%2e/order/1%2fx/y":     order, // dots are resolved, the slash is kept
		"/static/..;/order/1":              order,
		`/static/..\order/1`:               order,
		"/Order/1":                         order,
		"/order/1/":                        order,
		"/order//1":                        order,
		"/./order/1":                       order,
		"/Order/1%2fx":                     order,
		"/%6frder/1%2fx":                   order,
		"/%6frder/1%252fx":                 order,
		"/%6frder/1%3fx/y":                 order,
		"/%256frder/1":                     order,
		"/order%2f1":                       order,
		"/order%5c1":                       order,
		"/order;x/1":                       order,
		"/order/1?x":                       order,
		"/;/order/1":                       order,
		"/cart/%2e%2e%2forder/1":           order,
		"/order/1%2fx":                     order, // of other captures
		"/order/%2531":                     order,
		"/order/1;x":                       order,
		"/order/1%3bx":                     order,
		"/order/a%3fb":                     order,
		"/order/%2e":                       order,
		"/order/..":                        order,
		"/Shop/;/order":                    basket,
		"/Shop/./order":                    basket,
		"/Shop/%5c/order":                  basket,
		"/Shop/a%3fb/order":                basket,
		"/shop/a/order;jsessionid=1":       basket,
		"/BUY":                             buy,
		"/buy/":                            buy,
		"/buy/.":                           buy,
		"/buy;x/":                          buy,
		"/buy%23/x":                        buy,
		"/" + strings.Repeat(";", 100):     order,
		"/" + strings.Repeat("x%41", 3000): order,
	} {
		pattern, captures, cause := match(table, "POST "+path)
		if pattern != want || cause != reject.PathNotCanonical || strings.Join(captures, "") != "" {
			t.Errorf("%.40s: %q %q %v, want %q", path, pattern, captures, cause, want)
		}
		if _, _, cause := match(table, "PUT "+path); cause != 0 {
			t.Errorf("PUT %.40s: %v", path, cause)
		}
	}
}

func TestTable_LegalPathIsForwarded(t *testing.T) {
	table := tableOf(t, "/order/notes/", "!POST /order/{sku}", "!/buy", "!POST /api/", "/cart/{id}", "/")
	for request, want := range map[string]string{
		"GET /":                                "/",
		"GET /A/":                              "/",
		"GET /a//b":                            "/",
		"GET /a...b":                           "/",
		"GET /a%2fb":                           "/",
		"GET /a%25252fb":                       "/",
		"GET /a;jsessionid=1":                  "/",
		"GET /.well-known/x":                   "/",
		"GET /search/%E4%B8%AD%E6%96%87":       "/",
		"GET /order//1":                        "/", // another method
		"POST /Users/J%C3%BC/order":            "/",
		"POST /users/order/1;x/y":              "/",
		"POST /order/1%2fx/y;z":                "/", // two segments at least
		"POST /cart/%2forder%2f1":              "/cart/{id} %2forder%2f1",
		"POST /order/notes/A%20b;c//d":         "/order/notes/", // an earlier route keeps what is odd below it
		"POST /order/notes/":                   "/order/notes/",
		"POST /order/A.1":                      "POST /order/{sku} A.1",
		"POST /order/%31":                      "POST /order/{sku} %31",
		"POST /order/A-1%2D%20%E4%B8%AD100%25": "POST /order/{sku} A-1%2D%20%E4%B8%AD100%25",
		"POST /api//x;y/%2f/.":                 "POST /api/", // the same route and no captures in each reading
		"POST /API.json":                       "/",
		"PATCH /buy.css":                       "/",
		"POST /buy.json":                       "/", // endings are addresses of their own
	} {
		pattern, captures, cause := match(table, request)
		if got := strings.Join(append([]string{pattern}, captures...), " "); got != want || cause != 0 {
			t.Errorf("%s: %q %v, want %q", request, got, cause, want)
		}
	}
	nothing := tableOf(t, "/order/{sku}", "/")
	if pattern, _, cause := match(nothing, "POST /x/../order/1//%2541"); pattern != "/" || cause != 0 {
		t.Errorf("without stock: %q, %v", pattern, cause)
	}
}

func TestTable_RouteThatGuardsStockRejectsWhatAnEarlierRouteMayTake(t *testing.T) {
	table := tableOf(t, "POST /order/test", "shop.example/order/x", "GET /order/1", "!/order/{sku}")
	for request, want := range map[string]reject.Cause{
		"POST /order/%74est":         reject.PathNotCanonical,
		"POST /order/Test":           reject.PathNotCanonical,
		"PUT /order/%74est":          0,
		"POST /order/%31":            0,
		"HEAD /order/%31":            reject.PathNotCanonical,
		"GET /order/X":               0,
		"GET shop.example/order/X":   reject.PathNotCanonical,
		"POST other.example/order/X": 0,
	} {
		if pattern, _, cause := match(table, request); pattern != "/order/{sku}" || cause != want {
			t.Errorf("%s: %q %v, want %v", request, pattern, cause, want)
		}
	}
}

func TestTable_LinkThatCouldPlaceAnOrderTargetsStock(t *testing.T) {
	table := tableOf(t, "!POST /order/{sku}", "!shop.example/buy", "/")
	for target, want := range map[string]bool{
		"/buy": true, "/Buy?x": true, "/%62uy#x": true, "/x/../buy": true, "buy": true, "": true,
		"/": false, "/order/1": false, "/a%2fb;c": false, "/page?x=/../buy": false,
	} {
		if got := table.TargetsStock([]byte("GET"), []byte(target)); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
	for method, want := range map[string]bool{"HEAD": true, "GET": true, "get": false, "POST": false, "": false} {
		if SafeMethod([]byte(method)) != want {
			t.Errorf("%s is safe: %v", method, !want)
		}
	}
}

func TestTable_MatchAllocatesNothing(t *testing.T) {
	table := tableOf(t, "!POST /order/{sku}", "!POST /order/{shop}/{sku}/now", "!/api/now/", "shop.example/", "/")
	for _, path := range []string{
		"/order/1", "/order/A", "/order/%41", "/a%2fb;c//d/%E4%B8%AD", "/x/../y", "/" + strings.Repeat("%2541", 1600),
		"//evil/order/7", "/order/%09", "/api/now",
	} {
		q := Query{Method: []byte("POST"), Host: []byte("shop.example"), Path: []byte(path)}
		overridden := q
		overridden.OverrideMethods = [][]byte{[]byte("PUT"), []byte("a, b")}
		overridden.OverridePaths = [][]byte{[]byte("/order/%41?x")}
		if n := testing.AllocsPerRun(100, func() {
			table.Match(q)
			table.Match(overridden)
			table.TargetsStock(q.Method, q.Path)
		}); n != 0 {
			t.Errorf("%.40s: %v allocations", path, n)
		}
	}
}

func TestHostName_DropsPortAndFinalDot(t *testing.T) {
	for host, want := range map[string]string{
		"Shop.Example:8080": "shop.example", "shop.example.": "shop.example", "shop.example.:80": "shop.example",
		"[2001:DB8::1]:80": "[2001:db8::1]", "[::1]": "[::1]", "[::1": "[", "": "", ":80": "", ".": "",
	} {
		if got := string(HostName(nil, []byte(host))); got != want {
			t.Errorf("%q: %q, want %q", host, got, want)
		}
	}
}

// Whatever a path holds, a route that takes it has captured parts of it, and an ambiguous request names a route that
// guards stock.
func FuzzTable_Match(f *testing.F) {
	for _, path := range []string{
		"/", "", "*", "//", "/order/1", "/Order/%31", "/order/a%2fb", "/a/../order/1", "/order;x/1", "/%256frder/1",
	} {
		f.Add("POST", "shop.example", path, "PUT", "/order/2")
	}
	table := tableOf(f, "/order/test", "!POST /order/{sku}", "!shop.example/buy/{x...}", "/a/{b}/{c...}", "/")
	f.Fuzz(func(t *testing.T, method, host, path, overrideMethod, overridePath string) {
		q := Query{Method: []byte(method), Host: []byte(host), Path: []byte(path)}
		m, detail := table.Match(q)
		if detail.Cause != 0 && table.entries[m.Index].guard == Unguarded {
			t.Fatalf("%q is ambiguous because of %s", path, table.entries[m.Index].text)
		}
		for _, captured := range m.Captures {
			if !strings.Contains(path, string(captured)) {
				t.Fatalf("%q: captured %q", path, captured)
			}
		}
		if path == "" || path[0] != '/' || detail.Cause != 0 {
			return
		}
		if m.Index >= 0 && !table.entries[m.Index].couldTake([]byte(path)) {
			t.Fatalf("%q is taken by %s, and could not be", path, table.entries[m.Index].text)
		}
		q.OverrideMethods, q.OverridePaths = [][]byte{[]byte(overrideMethod)}, [][]byte{[]byte(overridePath)}
		if _, detail = table.Match(q); detail.Cause == reject.PathNotCanonical {
			t.Fatalf("%q: an override makes the path ambiguous", path)
		}
	})
}
