package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// request sends one request and returns its status and the reason of a rejection.
func (g *running) request(method, target, body string, fields ...string) (status int, reason string) {
	g.t.Helper()
	r, err := http.NewRequest(method, "http://"+g.front+target, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
	resp, err := g.client.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("X-Sluice-Reason")
}

const formField = "Content-Type: application/x-www-form-urlencoded"

func TestSyntax_NamesInQuotesFindSKUAndUser(t *testing.T) {
	t.Parallel()
	stock, shop := redistest.Start(t), open(t, nil)
	does(t, stock.Client, "SET seckill:stock:1001 5", "SET seckill:stock:1002 0")
	g := gate(t, redisAt(stock), shop.setting(), `
[[limits.rate]]
name = "device"
key = "$header('X-Device.Id')"
rate = "5/d"
burst = 2
routes = ["json"]

[[route]]
name = "form"
match = "POST /form"
gate = "check"
sku = "$form('order[sku_id]')"
user = "$(cookie_connect.sid)"

[[route]]
name = "json"
match = "POST /json"
gate = "check"
sku = "$json('a.b'.sku)"
`)
	form := func(sku string) string { return url.Values{"order[sku_id]": {sku}}.Encode() }
	for _, c := range []struct {
		target, body string
		fields       []string
		want         string
	}{
		{"/form", form("1001"), []string{formField, "Cookie: connect=1; connect.sid=u1"}, "200 "},
		{"/form", form("1002"), []string{formField, "Cookie: connect.sid=u1"}, "409 sold_out"},
		{"/form", form("1001"), []string{formField, "Cookie: connect=1"}, "401 unidentified"},
		{"/form", "order[qty]=1", []string{formField, "Cookie: connect.sid=u1"}, "400 bad_request"},
		{"/form", form("1001") + "&order[sku_id][]=1002", []string{formField, "Cookie: connect.sid=u1"}, "400 ambiguous"},
		{"/json", `{"a.b":{"sku":1001}}`, []string{"Content-Type: application/json", "X-Device.Id: d1"}, "200 "},
		{"/json", `{"a":{"b":{"sku":1001}}}`, []string{"Content-Type: application/json"}, "400 bad_request"},
		{"/json", `{"a.b":{"sku":1001}}`, []string{"Content-Type: application/json", "X-Device.Id: d1"}, "200 "},
		{"/json", `{"a.b":{"sku":1001}}`, []string{"Content-Type: application/json", "X-Device.Id: d1"}, "429 rate"},
		{"/json", `{"a.b":{"sku":1001}}`, []string{"Content-Type: application/json", "X-Device.Id: d2"}, "200 "},
	} {
		status, reason := g.request("POST", c.target, c.body, c.fields...)
		if got := fmt.Sprint(status, " ", reason); got != c.want {
			t.Errorf("%s %s %q: %s, want %s", c.target, c.body, c.fields, got, c.want)
		}
	}
	if n := shop.arrivals.Load(); n != 4 {
		t.Errorf("%d orders reached the shop, want 4", n)
	}
	said := ok(t, "explain", "--config", g.file, "POST /form", "-d", form("1001"), "-H", formField,
		"-H", "Cookie: connect.sid=u1")
	wants(t, said, "sku       1001", "user      u1")
	said = run(t, "", "explain", "--config", g.file, "POST /form", "-H", "Cookie: connect.sid=u1", "-H", formField).out
	wants(t, said, "$form('order[sku_id]')", "try       -H '"+formField+"' -d 'order%5Bsku_id%5D=1'")
}

func TestSyntax_RouteWithSeveralMethodsAndLiteralsBesideItsName(t *testing.T) {
	t.Parallel()
	stock, shop := redistest.Start(t), open(t, nil)
	does(t, stock.Client, "SET seckill:stock:1001 5", "SET seckill:stock:1002 0")
	g := gate(t, redisAt(stock), shop.setting(), `
[[route]]
name = "buy"
match = "PUT|POST /buy/{sku}.html"
gate = "check"
sku = "$path_sku"

[[route]]
name = "rest"
match = "/"
gate = "pass"
`)
	for request, want := range map[string]string{
		"POST /buy/1001.html": "200 ", "PUT /buy/1002.html": "409 sold_out", "POST /buy/1002.html": "409 sold_out",
		"GET /buy/1002.html": "200 ", "POST /buy/1002.htm": "200 ", "POST /buy/1002%2ehtml": "400 ambiguous",
		"POST /buy/1002.HTML": "400 ambiguous", "POST /buy/1002.html/": "400 ambiguous",
		"POST /buy/x.html": "404 unknown_sku",
	} {
		method, target, _ := strings.Cut(request, " ")
		status, reason := g.request(method, target, "")
		if got := fmt.Sprint(status, " ", reason); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	wants(t, ok(t, "explain", "--config", g.file, "PUT /buy/1001.html"), "route     buy", "sku       1001")
}

func TestSyntax_RedisIsReachedByItsUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "redis.sock")
	stock, shop := redistest.Start(t, "--unixsocket", path), open(t, nil)
	socket := strings.ReplaceAll(redisAt(stock), stock.Addr, "unix:"+path)
	if !strings.Contains(socket, "unix:") {
		t.Fatalf("no address in %q", socket)
	}
	g := gate(t, socket, shop.setting(), boundless, reserveRoutes)
	ok(t, "stock", "set", "--config", g.file, "1001", "1")
	for i, want := range []int{http.StatusOK, http.StatusConflict} {
		b := &buyer{user: fmt.Sprint("u", i)}
		if status, reason := b.buy(g.front); status != want {
			t.Errorf("order %d: %d %s, want %d", i, status, reason, want)
		}
		b.leave()
		soon(t, "the order is confirmed", func() bool { return ledgerOf(t, stock, "1001").sold == 1 })
	}
	wants(t, run(t, "", "check", "--online", g.file).out, "unix:"+path+" answers")
	stock.Kill()
	wants(t, run(t, "", "check", "--online", g.file).out, "dial unix", "write its unixsocket into redis.conf")
}

func TestSyntax_ShopWithOneProductAndAFixedKey(t *testing.T) {
	t.Parallel()
	for _, gateName := range []string{"check", "reserve"} {
		t.Run(gateName, func(t *testing.T) {
			t.Parallel()
			stock, shop := redistest.Start(t), open(t, nil)
			text := "stock.layout.key = \"$sku\"\n" + boundless + `
[[route]]
name = "order"
match = "POST /order"
gate = "` + gateName + `"
sku = "stock_count"
user = "$cookie_uid"
`
			does(t, stock.Client, "SET stock_count 1")
			g := gate(t, redisAt(stock), shop.setting(), text)
			if gateName == "reserve" {
				ok(t, "stock", "set", "--config", g.file, "stock_count", "1")
			}
			if status, reason := g.request("POST", "/order", "", "Cookie: uid=a"); status != http.StatusOK {
				t.Errorf("%d %s", status, reason)
			}
			does(t, stock.Client, "SET stock_count 0")
			soon(t, "the stock is sold out", func() bool {
				_, reason := g.request("POST", "/order", "", "Cookie: uid=b")
				return reason == "sold_out"
			})
			if n, err := stock.Client.Exists(context.Background(), "stock_count").Result(); err != nil || n != 1 {
				t.Errorf("%d keys, %v", n, err)
			}
		})
	}
}

// What cannot be meant so is answered with its place and the form that can.
func TestSyntax_MistakeNamesTheFormThatIsMeant(t *testing.T) {
	t.Parallel()
	const one = "sku = \"1\"\n"
	for text, want := range map[string]string{
		`sku = "$form_order[sku_id]"`: `:6: route[1].sku: $form_order[sku_id]: the name ends before "["; write ` +
			`$form("order[sku_id]")`,
		`sku = "$json_items[0].sku"`: `:6: route[1].sku: $json_items[0]: the path ends before "["; write $json_items.0`,
		one + `user = "$cookie(connect.sid)"`: `:7: route[1].user: "$cookie(connect.sid)": a name stands in quotes; ` +
			`write it like $cookie("connect.sid")`,
		one + `user = "$jwt('https://a/b')"`: `:7: route[1].user: $jwt('https://a/b') is of a token that is not ` +
			`verified; write auth.jwt_algorithm`,
		one + "[stock.layout]\nkey = \"a:count\"": `:8: stock.layout.key: "a:count" has no $sku: all SKUs would share ` +
			`it; write it like "seckill:stock:$sku"; for a shop with one product write key = "a:$sku", and sku = "count" in ` +
			`its [[route]]`,
		one + "[stock.redis]\naddresses = [\"/a\", \"b:1\"]": `:8: stock.redis.addresses[1]: "/a" is a unix socket, ` +
			`which leads to one server; write it alone`,
	} {
		path := file(t, shopSetting+"[[route]]\nname = \"order\"\nmatch = \"POST /x\"\ngate = \"check\"\n"+text+"\n")
		s := run(t, "", "check", path)
		if s.code == 0 || !strings.Contains(s.out+s.complaint, want) {
			t.Errorf("%s: exit code %d, want %s in\n%s%s", text, s.code, want, s.out, s.complaint)
		}
	}
	path := file(t, shopSetting+strings.Replace(routes, "$cookie_uid", "$cookie_connect.sid", 1))
	wants(t, run(t, "", "check", path).out, "write $cookie('connect.sid'), or $(cookie_connect).sid where the rest is text")
}
