package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// shown is the page that a browser gets for a reason.
func shown(t *testing.T, p *Proxy, reason Reason, wait time.Duration, header string) string {
	t.Helper()
	resp := refusedWith(t, p, reason, wait, "GET /search/ HTTP/1.1\r\nHost: shop.example\r\nAccept: text/html\r\n"+header+"\r\n")
	return string(resp.Body())
}

// replied is the gate's own answer, read as a client does.
func replied(t *testing.T, x *exchange) *fasthttp.Response {
	t.Helper()
	var resp fasthttp.Response
	if err := resp.Read(bufio.NewReader(bytes.NewReader(x.reply.appendTo(nil, "", false)))); err != nil {
		t.Fatal(err)
	}
	return &resp
}

// refusedWith has p refuse one request that it reads.
func refusedWith(t *testing.T, p *Proxy, reason Reason, wait time.Duration, raw string) *fasthttp.Response {
	t.Helper()
	x := requested(t, p, raw)
	r := p.begin(x)
	p.takeID(r)
	p.match(r)
	r.refused(reason, wait)
	p.refuse(r, reason, wait)
	return replied(t, x)
}

func pagesOf(t *testing.T, set func(*Responses)) *Proxy {
	t.Helper()
	o := options(shopFunc(answering))
	o.Responses.Languages, o.Responses.Jitter = []string{"zh-CN", "en"}, 2*time.Second
	if set != nil {
		set(&o.Responses)
	}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// eachPage calls f with every page that there is, built in.
func eachPage(t *testing.T, f func(reason Reason, lang, text string)) {
	p := pagesOf(t, nil)
	for reason := Admitted + 1; reason < numReasons; reason++ {
		for _, lang := range languageTags {
			f(reason, lang, shown(t, p, reason, 42*time.Second, "Accept-Language: "+lang+"\r\nX-Request-Id: 0123456789abcdef0123456789abcdef\r\n"))
		}
	}
}

func TestPageIsSmallAndStandsAlone(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)\b(src|srcset|action)=|<link|<img|@import|url\(|https?:`)
	const icon = `<link rel="icon" href="data:,">` // without it each browser asks for /favicon.ico as well
	eachPage(t, func(reason Reason, lang, text string) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		text, rest, found := strings.Cut(text, icon)
		if text += rest; !found {
			t.Errorf("%s %s: it has no icon", reason, lang)
		}
		if packed.Len() > 2048 {
			t.Errorf("%s %s: %d bytes gzipped", reason, lang, packed.Len())
		}
		if m := elsewhere.FindString(text); m != "" {
			t.Errorf("%s %s: asks for something else: %q", reason, lang, m)
		}
		if strings.Contains(text, "SluiceGap") || strings.ContainsAny(text, bodyMarks+pageMarks) {
			t.Errorf("%s %s: a gap was left open: %s", reason, lang, text)
		}
	})
}

func TestPageIsAccessible(t *testing.T) {
	eachPage(t, func(reason Reason, lang, text string) {
		must := []string{`<html lang="` + lang + `">`, "<title>", "<h1>", "<main>", `role="status"`, `name="viewport"`, "prefers-color-scheme:dark", "min-width:44px;min-height:44px", "a:focus-visible{outline:"}
		if refusals[reason].class == NotStartedClass || refusals[reason].class == Busy {
			must = append(must, `role="timer"`)
		}
		for _, part := range must {
			if !strings.Contains(text, part) {
				t.Errorf("%s %s: lacks %s", reason, lang, part)
			}
		}
	})
}

// Contrast as WCAG 2.2 computes it; 4.5 to 1 is AA for text.
func TestPageHasContrastInLightAndDark(t *testing.T) {
	text := shown(t, pagesOf(t, nil), SoldOut, 0, "")
	schemes := regexp.MustCompile(`:root\{([^}]*)\}`).FindAllStringSubmatch(text, -1)
	if len(schemes) != 2 {
		t.Fatalf("%d sets of colours, want a light and a dark one", len(schemes))
	}
	for _, scheme := range schemes {
		colour := map[string]float64{}
		for _, m := range regexp.MustCompile(`--(\w+):#([0-9a-f]+)`).FindAllStringSubmatch(scheme[1], -1) {
			colour[m[1]] = luminance(t, m[2])
		}
		for _, pair := range [][2]string{{"fg", "bg"}, {"dim", "bg"}, {"on", "key"}, {"key", "bg"}} {
			a, b := colour[pair[0]], colour[pair[1]]
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 || math.IsNaN(ratio) {
				t.Errorf("%s on %s: %.2f to 1 in %s", pair[0], pair[1], ratio, scheme[1])
			}
		}
	}
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(c uint64) float64 {
		v := float64(c&255) / 255
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

func TestPageSaysFirstThatThereIsNoOrderOnlyWhereThatIsKnown(t *testing.T) {
	eachPage(t, func(reason Reason, lang, text string) {
		i := max(0, strings.Index(languageTags[0], lang))
		if lang == languageTags[chinese] {
			i = int(chinese)
		}
		_, main, _ := strings.Cut(text, "<main>")
		first := strings.Index(main, notOrdered.in[i])
		switch {
		case reason.detail() == notOrdered:
			if title := strings.Index(main, "<h1>"); first < 0 || first > title {
				t.Errorf("%s %s: what a shopper wants to know does not stand first: %s", reason, lang, main)
			}
		case first >= 0:
			t.Errorf("%s %s: tells of no order, which it does not know", reason, lang)
		case !strings.Contains(main, reason.detail().in[i]):
			t.Errorf("%s %s: does not say what is so: %s", reason, lang, main)
		}
	})
}

func TestEarlyPageGoesOnByItselfAtTheStart(t *testing.T) {
	p := pagesOf(t, nil)
	for wait, clock := range map[time.Duration]string{42 * time.Second: "0:42", 3599*time.Second + 1: "1:00:00", 61*time.Minute + 5*time.Second: "1:01:05"} {
		text := shown(t, p, NotStarted, wait, "")
		for _, part := range []string{">" + clock + "</b>", fmt.Sprintf(`data-ms="%d"`, wait.Milliseconds()), `data-go="/search/"`, `data-jitter="2000"`} {
			if !strings.Contains(text, part) {
				t.Errorf("%v: lacks %s: %s", wait, part, text)
			}
		}
		least := int(min(wait, latestReturn) / time.Second)
		m := regexp.MustCompile(`<noscript><meta http-equiv="refresh" content="(\d+);url=/search/">`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%v: does not come again without a script: %s", wait, text)
		}
		if n, _ := strconv.Atoi(m[1]); n < least || n > least+3 {
			t.Errorf("%v: comes again after %d s, want %d to %d", wait, n, least, least+3)
		}
	}
	if text := shown(t, p, NotStarted, 0, ""); !strings.Contains(text, fmt.Sprintf(`content="%d;`, soonest)) || strings.Contains(text, `data-ms="0"`) {
		t.Errorf("a start at an unknown time: the page must not come at once: %s", text)
	}
}

// A page that goes on by itself, or a link that is followed, must never be an order.
func TestPageNeverLeadsToWhereOrdersArePlaced(t *testing.T) {
	p := pagesOf(t, nil)
	p.routes[0].pattern.method = "" // an order by GET
	for _, c := range []struct{ raw, want string }{
		{"GET /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/item?id=1&from=a\r\n", "/item?id=1&amp;from=a"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://evil.example/item\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example.evil/\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example//evil.example/\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/\"onclick=x\r\n", "/"},
		{"POST /search/?q=1 HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/list#top\r\n", "/list"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/api/seckill/1001/order\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/API/%73eckill/1001/order/?x=1\r\n", "/"},
		{"POST /api/seckill/1001/order HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/%E5%95%86;a=1?x=1\r\n", "/%E5%95%86;a=1?x=1"},
		{"GET /search/?q=1 HTTP/1.1\r\nHost: shop.example\r\nReferer: https://shop.example/list\r\n", "/search/?q=1"},
	} {
		text := string(refusedWith(t, p, NotStarted, time.Minute, c.raw+"Accept: text/html\r\n\r\n").Body())
		if !strings.Contains(text, `<a href="`+c.want+`">`) || !strings.Contains(text, `data-go="`+c.want+`"`) || !strings.Contains(text, ";url="+c.want+`">`) {
			t.Errorf("%s: want it to lead to %s: %s", c.raw, c.want, text)
		}
	}
}

func TestProgramsGetJSONAndBrowsersPages(t *testing.T) {
	p := pagesOf(t, nil)
	for accept, html := range map[string]bool{
		"":    false,
		"*/*": false,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true,
		"application/json, text/plain, */*":                               false,
		"application/json, text/javascript, */*; q=0.01":                  false,
		"text/html, */*; q=0.01":                                          true,
		"application/json, text/html;q=0.9":                               false,
		"application/json;q=0.5, text/html;q=0.9":                         true,
		"text/html;q=0, application/json":                                 false,
		"text/html;level=1;q=0.3, application/problem+json;q=0.2":         true,
	} {
		resp := refusedWith(t, p, SoldOut, 0, "GET /search/ HTTP/1.1\r\nHost: shop.example\r\nAccept: "+accept+"\r\n\r\n")
		if got := strings.HasPrefix(string(resp.Header.ContentType()), "text/html"); got != html {
			t.Errorf("Accept %q: a page %v, want %v", accept, got, html)
		}
	}
}

func TestLanguageGoesByAcceptLanguage(t *testing.T) {
	words := map[string]string{"ja.toml": "sold_out = \"売り切れ\"\nnot_ordered = \"注文されていません。\"\n", "zh-TW.toml": `sold_out = "已售罄了"`, "README": "any"}
	p := pagesOf(t, func(r *Responses) { r.Pages = PageFiles{"pages", words} })
	for accept, want := range map[string]string{
		"":                                      "zh-CN",
		"*":                                     "zh-CN",
		"fr":                                    "zh-CN",
		"en":                                    "en",
		"en-GB":                                 "en",
		"EN-us,zh;q=0.5":                        "en",
		"fr, ja;q=0.2":                          "ja",
		"zh-TW,zh;q=0.9,en;q=0.8":               "zh-TW",
		"zh-HK":                                 "zh-CN",
		"zh":                                    "zh-CN",
		"zh-CN;q=0, en;q=0.1":                   "en",
		"*;q=0.1, zh-CN;q=0, en;q=0, zh-TW;q=0": "ja",
		"en;q=0, *":                             "zh-CN",
		"en;q=1.000;x=y, ja":                    "en",
		"-,;q=1":                                "zh-CN",
	} {
		resp := refusedWith(t, p, SoldOut, 0, "GET /search/ HTTP/1.1\r\nHost: shop.example\r\nAccept: text/html\r\nAccept-Language: "+accept+"\r\n\r\n")
		if got := string(resp.Header.Peek("Content-Language")); got != want || !strings.Contains(string(resp.Body()), `lang="`+want+`"`) {
			t.Errorf("Accept-Language %q: %s, want %s", accept, got, want)
		}
	}
	text := shown(t, p, SoldOut, 0, "Accept-Language: ja\r\n")
	for _, part := range []string{"<h1>売り切れ</h1>", "注文されていません。", goBack.in[english]} {
		if !strings.Contains(text, part) {
			t.Errorf("a language by a file: lacks %q: %s", part, text)
		}
	}
	resp := refusedWith(t, p, SoldOut, 0, "GET /search/ HTTP/1.1\r\nHost: shop.example\r\nAccept-Language: ja\r\n\r\n")
	if !strings.Contains(string(resp.Body()), `"title":"売り切れ"`) {
		t.Errorf("programs hear the same language: %s", resp.Body())
	}
}

func TestOwnTemplateIsShownAndCannotBeBrokenOutOf(t *testing.T) {
	own := map[string]string{
		"_top.html":      `<header>{{.Lang}}</header>`,
		"sold_out.html":  `{{template "_top.html" .}}<a href='{{.Back}}' title='{{.SKU}}'>{{.Title}}</a><script>var sku="{{.SKU}}",id={{.RequestID}}</script>`,
		"page.en.html":   `any {{.Reason}} {{.Status}}`,
		"paused.en.html": "paused",
	}
	p := pagesOf(t, func(r *Responses) { r.Pages = PageFiles{"pages", own} })
	for _, c := range []struct {
		reason     Reason
		lang, want string
	}{
		{SoldOut, "en", `<header>en</header><a href='/' title='a-1'>Sold out</a><script>var sku="a-1",id="x1"</script>`},
		{SoldOut, "zh", `<header>zh-CN</header><a href='/' title='a-1'>已售罄</a><script>var sku="a-1",id="x1"</script>`},
		{Paused, "en", "paused"},
		{Ended, "en", "any ended 403"},
		{Ended, "zh", "<!doctype html>"},
	} {
		got := skuShown(t, p, c.reason, c.lang, "a-1", "x1")
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.reason, c.lang, got, c.want)
		}
	}
	for _, sku := range []string{`'onclick='x`, `";alert(1)//`, "</script>", "javascript:x", "`${x}`"} {
		got := skuShown(t, p, SoldOut, "en", sku, sku)
		if want := `title=''>Sold out</a><script>var sku="",id=""</script>`; !strings.HasSuffix(got, want) {
			t.Errorf("SKU %s came into the page: %s", sku, got)
		}
	}
}

// skuShown is the page of a refusal about a SKU.
func skuShown(t *testing.T, p *Proxy, reason Reason, lang, sku, id string) string {
	t.Helper()
	x := requested(t, p, "POST /api/seckill/1/order HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nAccept: text/html\r\nAccept-Language: "+lang+"\r\n\r\n")
	r := p.begin(x)
	p.match(r)
	r.sku, r.id = []byte(sku), []byte(id)
	r.refused(reason, 0)
	p.refuse(r, reason, 0)
	return string(replied(t, x).Body())
}

func TestTemplateThatCannotBeUsedIsRefusedWithFileAndLine(t *testing.T) {
	for name, want := range map[string]string{
		"sold_out.html\n<p>\n{{.Title":                "pages/sold_out.html:2: unclosed action",
		"sold_out.html\n{{if}}":                       "pages/sold_out.html:1: missing value for if",
		"busy.en.html\n\n{{.Nothing}}":                "pages/busy.en.html:2:",
		"busy.html\n<a href={{if .Waits}}\"{{end}}x>": "pages/busy.html",
		"_top.html\n\n\n{{end}}":                      "pages/_top.html:3: unexpected {{end}}",
		"soldout.html\nx":                             "pages/soldout.html: is no page; name it page.html, or after a class: busy, sold_out",
		"page.12.html\nx":                             `pages/page.12.html: "12" is no language`,
		"page.html\na\n\x05":                          "pages/page.html:2: has a control character",
		"ja.toml\nsold_out = \"x\"\nsoldout = \"y\"":  "pages/ja.toml:2: soldout: nothing is said so",
		"ja.toml\nsold_out = \"x":                     "pages/ja.toml:1: ",
		"ja.toml\nsold_out = 7":                       "pages/ja.toml: ",
		"ja.toml\n\nsold_out = \"\\u0005\"":           "pages/ja.toml:2: sold_out: has a control character",
		"japanese.toml\n":                             `pages/japanese.toml: "japanese" is no language`,
	} {
		file, text, _ := strings.Cut(name, "\n")
		o := options(shopFunc(answering))
		o.Responses.Pages = PageFiles{"pages", map[string]string{file: text}}
		_, err := New(o)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s …", name, err, want)
		}
	}
}

func TestUnknownLanguageIsRefused(t *testing.T) {
	if err := CompileResponses(Responses{Languages: []string{"en", "ja"}}); err == nil || !strings.Contains(err.Error(), `"ja" is not known`) {
		t.Errorf("ja without a file: %v", err)
	}
	if err := CompileResponses(Responses{Languages: []string{"ja"}, Pages: PageFiles{"d", map[string]string{"ja.toml": ""}}}); err != nil {
		t.Errorf("ja with a file: %v", err)
	}
}

func TestRefusedBrowserGetsThePageOnTheWire(t *testing.T) {
	addr, _ := gate(t, func() Options { o := options(shopFunc(answering)); soldOut(&o); return o }())
	resp, body := talk(t, addr, "POST /api/seckill/1001/order HTTP/1.1\r\nHost: x\r\nCookie: uid=7\r\nAccept: text/html\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	if resp.StatusCode != http.StatusConflict || resp.Header.Get("Vary") == "" || !strings.Contains(body, notOrdered.in[english]) || !strings.HasSuffix(strings.TrimSpace(body), "</html>") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
	}
}
