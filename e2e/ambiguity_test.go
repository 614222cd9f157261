package e2e

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
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

// A condition or a waiting room stands before the route whose gate looks at no stock, too.
func TestAmbiguity_NoSpellingLeadsAroundARoomOrACondition(t *testing.T) {
	t.Parallel()
	shop, redis := open(t, nil), redistest.Start(t)
	g := gate(t, redisAt(redis), shop.setting(), fmt.Sprintf("auth.room_key_file = %q", keep(t, "room", oldRoomKey)), `
[[room]]
name = "rush"
per_second = 1

[[route]]
name = "order"
match = "POST /order"
gate = "limit"
user = "$cookie_uid"
room = "rush"

[[route]]
name = "vip"
match = "/vip/"
gate = "limit"
require = ["$http_x_level=vip"]

[[route]]
name = "rest"
match = "/"
gate = "pass"
`)
	g.rejects(t, shop, postsTo("/%6frder", "/o%72der", "//order", "/Order", "/order/", "/x/../order", "/order;x",
		"//x/order", "/Vip/a", "/v%69p/a", "//vip/a", "/x/../vip/a", "/vip", "/index.php/vip/a")...)
	g.rejects(t, shop, complete("POST", "/page", "X-Original-URL: /order"),
		complete("GET", "/page", "X-Rewrite-URL: /vip/a"), complete("GET", "/order", "X-HTTP-Method-Override: POST"))
	g.passes(t, complete("POST", "/page%2Fa", ""), complete("GET", "/order", ""), complete("GET", "/orders/%C3%A9", ""),
		complete("GET", "/vip/A%2Fb;c", "X-Level: vip"),
		complete("POST", "/vip/a", "X-Level: vip\r\nX-HTTP-Method-Override: PUT"))
	g.raw(t, complete("POST", "/order", "Cookie: uid=7")).must(t, 403, "room")
	g.raw(t, complete("GET", "/vip/a", "")).must(t, 401, "unidentified")
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
		"/o%u0072der/1001", "/order/%u0031001",
		"//evil/order;jsessionid=1/1001", "//evil/x/..;/order/1001", "//evil/x/%2e%2e/order/1001",
		"http://shop//evil/order/1001", "http://shop/order;a/1001", "//evil/ORDER/1001", "//evil/slash/1001")...)
	g.passes(t, postsTo(
		"/order/1001", "http://shop/order/1001", "//cdn/logo.png", "//evil/x/order/1001", "/x//evil/order/1001",
		"/evil:80/order/1001", "/x;jsessionid=1/order/1001", "/page?to=//evil/order/1001", "/tags/100%25up")...)
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

// named are routes that find SKU and user by name, and a limit that counts by one.
const named = `
[[route]]
name = "form"
match = "POST /form"
gate = "check"
sku = "$form_goods_id"
user = "$cookie_user_id"

[[route]]
name = "arg"
match = "POST /arg"
gate = "check"
sku = "$arg_goods_id"
user = "$cookie_user_id"

[[route]]
name = "one"
match = "POST /one"
gate = "check"
sku = "$arg_goods_id"
sources = "one"

[[route]]
name = "json"
match = "POST /json"
gate = "check"
sku = "$json_items.0.sku"

[[route]]
name = "rest"
match = "/"
gate = "pass"

[[limits.rate]]
name = "user"
key = "$cookie_user_id"
routes = ["rest"]
rate = "1/m"
burst = 1
`

// typed makes a POST with a body and its type.
func typed(target, contentType, body string) string {
	return complete("POST", target, fmt.Sprintf("Cookie: user_id=7\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		contentType, len(body), body))
}

const (
	urlencoded = "application/x-www-form-urlencoded"
	multipart  = "multipart/form-data; boundary=b0"
)

// parts makes a multipart form of names and values in turn.
func parts(pairs ...string) (body string) {
	for i := 0; i < len(pairs); i += 2 {
		body += "--b0\r\nContent-Disposition: form-data; name=\"" + pairs[i] + "\"\r\n\r\n" + pairs[i+1] + "\r\n"
	}
	return body + "--b0--\r\n"
}

func TestAmbiguity_NameThatAShopFoldsIsNoWayAroundTheGate(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), named)
	var wrong []string
	for _, name := range []string{
		"goods.id", "goods+id", "goods[id", "+goods_id", "goods_id[]", "goods.id[]", "goods_id[a]", "[goods_id]",
		"goods%2eid", "goods%5Bid", "goods_id%5B%5D", "%20goods%20id", "goods_id.a",
		"GoodsId", "'goods_id'", "%22goods_id%22", "x%3D1%26goods_id", "goods%255Fid", // GoFrame
	} {
		wrong = append(wrong, typed("/form", urlencoded, "goods_id=1001&"+name+"=2"),
			typed("/form", urlencoded, name+"=2&goods_id=1001"),
			complete("POST", "/arg?goods_id=1001&"+name+"=2", "Cookie: user_id=7"))
	}
	for _, name := range []string{
		"goods.id", "goods id", "goods[id", " goods_id", "goods_id[]", "goods_id;x", "=?utf-8?Q?goods=5Fid?=",
	} {
		wrong = append(wrong, typed("/form", multipart, parts("goods_id", "1001", name, "2")))
	}
	for _, cookies := range []string{
		"user_id=7; user.id=8", "user.id=8; user_id=7", "user_id=7; user[id=8", "user_id=7; user_id[]=8",
		"user_id=7; user%5fid=8", "user_id=7; a=b,user_id=8", "user_id=7\r\nCookie: user.id=8", "user_id[]=7",
		"user_id=7; a=b user_id=8", "user_id=7; \xa0user_id=8", // Bottle, CherryPy, WebOb, Mojolicious
	} {
		wrong = append(wrong, complete("POST", "/arg?goods_id=1001", "Cookie: "+cookies))
	}
	wrong = append(wrong, typed("/form", urlencoded, "goods_id=1001&goods_id%00x=2"),
		complete("POST", "/arg?%u0067oods_id=2&goods_id=1001", "Cookie: user_id=7"), // CGI.pm
		typed("/json", "application/json", `{"items":[{"sku":"1001","s_ku":"2"}]}`),
		typed("/json", "application/json", `{"items":[{"sku":"1001","S-Ku":"2"}]}`),
		typed("/json", "application/json", `{"items":[{"sku":"1001"}],"_items":[{"sku":"2"}]}`),
		typed("/json", "application/json", `{"items":[{"sku":"1001"},{"s_ku":"2"}]}`))
	g.rejects(t, shop, wrong...)
	g.passes(t,
		typed("/form", urlencoded, "goods_id=1001&goods=2&goods[id]=3&goods_id_2=4&x.goods_id=5&ids[]=6"),
		typed("/form", urlencoded, "goods_id=1001&goods.id=1001"),
		typed("/json", "application/json", `{"items":[{"sku":"1001","s_ku":"1001","skus":"2"}]}`),
		typed("/form", multipart, parts("goods_id", "1001", "note", "goods.id", "files[]", "x")),
		complete("POST", "/arg?goods_id=1001&page[]=2", "Cookie: user_id=7; theme.id=8; user=9; user_id=7"))

	// A limit counts by the folded name, too.
	g.passes(t, complete("GET", "/page", "Cookie: user.id=a"))
	for _, cookie := range []string{"user.id=a", "user_id=a", "user[id=a"} {
		g.raw(t, complete("GET", "/page", "Cookie: "+cookie)).must(t, 429, "rate")
	}
	g.passes(t, complete("GET", "/page", "Cookie: user.idx=a"))
}

func TestAmbiguity_QueryAndBodyMayNotContradictEachOther(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), named)
	g.rejects(t, shop,
		typed("/form?goods_id=2", urlencoded, "goods_id=1001"),
		typed("/form?goods.id=2", urlencoded, "goods_id=1001"),
		typed("/form?goods_id[]=1001", urlencoded, "goods_id=1001"),
		typed("/form?goods_id=", urlencoded, "goods_id=1001"),
		typed("/form?GOODS_ID=2", urlencoded, "goods_id=1001"),
		typed("/form?goods_id=2", multipart, parts("goods_id", "1001")),
		typed("/arg?goods_id=1001", urlencoded, "goods_id=2"),
		typed("/arg?goods_id=1001", urlencoded, "goods%5Fid=2"),
		typed("/arg?goods_id=1001", urlencoded, "goods.id=2"),
		typed("/arg?goods_id=1001", urlencoded+";charset=gbk", "goods_id=2"),
		typed("/arg?goods_id=1001", urlencoded+", x", "goods_id=2"),
		typed("/arg?goods_id=1001", "", "goods_id=2"),
		typed("/arg?goods_id=1001", "multipart/mixed; boundary=b0", parts("goods_id", "2")),
		typed("/arg?goods_id=1001", "application/json", `{"goods_id":2}`),
		typed("/arg?goods_id=1001", "application/vnd.api+json", `{"goods\u005fid":"2"}`),
		typed("/arg?goods_id=1001", "text/x-json", `{"goods_id":["2"]}`),
		typed("/json?items[][sku]=2", "application/json", `{"items":[{"sku":"1001"}]}`),
		typed("/json?items=2", "application/json", `{"items":[{"sku":"1001"}]}`),
		typed("/arg?goods_id=1001", multipart, parts("goods_id", "2")),
		typed("/arg?goods_id=1001", multipart, "x\r\n"+parts("goods_id", "2")))
	// Bottle and GoFrame heed no type, Tornado and Falcon how it begins, formidable a word anywhere in it.
	g.rejects(t, shop,
		typed("/arg?goods_id=1001", "text/plain", "goods_id=2"),
		typed("/arg?goods_id=1001", "text/plain", `{"goods_id":2}`),
		typed("/arg?goods_id=1001", "text/xml", "<a><goods_id>2</goods_id></a>"),
		typed("/arg?goods_id=1001", urlencoded, `{"goods_id":2}`),
		typed("/arg?goods_id=1001", urlencoded+"2", "goods%5Fid=2"),
		typed("/form", urlencoded, "\v{\"goods_id\":\"2\",\"x\":\"&goods_id=1001&\"}"),
		typed("/arg?goods_id=1001", urlencoded, "%7B%22goods%5Fid%22%3A2%7D"),
		typed("/arg?goods_id=1001", urlencoded, `{"goods_id":=2}`),
		typed("/arg?goods_id=1001", "x/multipart; boundary=b0", parts("goods_id", "2")),
		typed("/form", urlencoded, `{"goods_id":"2","x":"&goods_id=1001&"}`),
		typed("/form", urlencoded, "<a><goods_id>2</goods_id><![CDATA[&goods_id=1001&]]></a>"),
		typed("/form", urlencoded+"; x=multipart; boundary=b0", "x="+parts("goods_id", "2")+"&goods_id=1001"))
	for _, contentType := range []string{urlencoded + "+json", "application/xml+json"} { // a form for h3, Hertz, Elysia
		g.raw(t, typed("/json", contentType, `{"items":[{"sku":"1001"}],"x":"&items=2&"}`)).must(t, 400, "bad_request")
	}
	g.passes(t, typed("/arg?goods_id=1001", "text/plain", "a note"),
		typed("/arg?goods_id=1001", "application/json", `{"ref":"https://shop/?a=1&goods_id=1001","to":"100%up"}`),
		typed("/arg?goods_id=1001", "application/json", `{"ref":"https%3A%2F%2Fshop%2F%3Fa%3D1%26goods_id%3D2"}`),
		typed("/arg?goods_id=1001", "text/xml", "<a><all_goods_id>2</all_goods_id><b>C:\\x&#10;</b></a>"),
		typed("/arg?goods_id=1001", "application/octet-stream", "\xff%u00ff&\x00"),
		typed("/arg?goods_id=1001", "text/plain", `{"goods_id":1001,"note":"x"}`),
		typed("/arg?goods_id=1001", "image/png", "\x89PNG\r\n\x00"))
	if a := g.raw(t, typed("/form?goods_id=2", urlencoded, "goods_id=1001")); !strings.Contains(a.body,
		"query and body differ: $form_goods_id") {
		t.Errorf("the cause does not say what to change: %s", a.body)
	}
	g.passes(t,
		typed("/form?goods_id=1001&page=2", urlencoded, "goods_id=1001"),
		typed("/arg?goods_id=1001", urlencoded, "goods_id=1001&x=%zz"),
		typed("/arg?goods_id=1001", "application/json", `{"goods_id":1001,"line":{"goods_id":2}}`),
		typed("/json?sku=2", "application/json", `{"items":[{"sku":"1001"}]}`),
		typed("/arg?goods_id=1001", multipart, parts("note", "goods")),
		complete("POST", "/arg?goods_id=1001", "Goods-Id: 2\r\nCookie: user_id=7; goods_id=2"),
		typed("/one?goods_id=1001", urlencoded, "goods_id=2"))
	text := ok(t, "explain", "--config", g.file, "POST /one?goods_id=1001")
	if !strings.Contains(text, "sources   one") {
		t.Errorf("explain does not tell the sources: %s", text)
	}
}

func TestAmbiguity_ObjectIsNoArray(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := stocked(t, shop.setting(), named)
	for _, body := range []string{
		`{"items":{"0":{"sku":"1001"}}}`, `{"items":{"0":{"sku":"1001"},"1":{"sku":"2"}}}`,
		`{"items":{"1":{"sku":"2"},"0":{"sku":"1001"}}}`, `{"items":{"\u0030":{"sku":"1001"}}}`,
	} {
		g.raw(t, typed("/json", "application/json", body)).must(t, 400, "bad_request")
	}
	if n := shop.arrivals.Load(); n != 0 {
		t.Errorf("%d of these orders reached the shop", n)
	}
	g.passes(t, typed("/json", "application/json", `{"items":[{"sku":"1001"}],"by":{"0":1}}`))
}
