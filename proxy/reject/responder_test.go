package reject

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy/server"
)

var update = flag.Bool("update", false, "write what is answered into testdata, instead of comparing it")

// testOptions are those of the default configuration, without jitter.
func testOptions() Options {
	return Options{
		Languages: []string{"zh-CN", "en"}, Origins: []string{"https://a.example"},
		RequestIDHeader: "X-Request-Id",
		EnvelopeStatus:  200,
		EnvelopeBody:    `{"code":$code,"msg":"$message","data":null,"detail":"$detail","retry":$retry_after}`,
		Answers: map[Class]Answer{
			Busy: {Status: 429, RetryAfter: time.Second, Code: 42900}, SoldOutClass: {Status: 409, Code: 40901},
			NotStartedClass: {Status: 403, Code: 40301}, EndedClass: {Status: 403, Code: 40302},
			PausedClass: {Status: 503, RetryAfter: 10 * time.Second, Code: 50301}, ConfirmedClass: {Status: 200},
			DuplicateClass: {Status: 409, Code: 40902}, DeniedClass: {Status: 403, Code: 40303},
			UnidentifiedClass: {Status: 401, Code: 40100}, UnknownSKUClass: {Status: 404, Code: 40400},
			BadRequestClass: {Status: 400, Code: 40000}, Unavailable: {Status: 503, RetryAfter: 3 * time.Second, Code: 50300},
		},
	}
}

func responder(t testing.TB, set func(*Options)) *Responder {
	t.Helper()
	o := testOptions()
	if set != nil {
		set(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answered is the answer as a client reads it.
func answered(t testing.TB, raw []byte) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		t.Fatalf("%v: %q", err, raw)
	}
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp, body.String()
}

func ask(t testing.TB, r *Responder, c Case) (*http.Response, string) {
	t.Helper()
	return answered(t, written(r, &c))
}

// written is the whole answer.
func written(r *Responder, c *Case) []byte {
	var out fasthttp.Response
	var text server.Prepared
	r.Write(&out, &text, c)
	return server.AppendResponse(nil, &out, &text, "")
}

var browser, program = []byte("text/html,*/*;q=0.8"), []byte("application/json")

// eachAnswer calls f with every reason, format and built-in language, and the responder of that format.
func eachAnswer(t *testing.T, f func(r *Responder, reason Reason, format Format, lang string)) {
	var responders [numFormats]*Responder
	for format := HTML; format < numFormats; format++ {
		responders[format] = responder(t, func(o *Options) { o.Format = format })
	}
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		for format := HTML; format < numFormats; format++ {
			for _, lang := range languageTags {
				f(responders[format], reason, format, lang)
			}
		}
	}
}

var invisible = regexp.MustCompile(`(?s)<(style|script|title|noscript)>.*?</(style|script|title|noscript)>|<[^>]*>`)

// shown is the text of a page that is visible, on one line.
func shown(page string) string {
	return strings.Join(strings.Fields(invisible.ReplaceAllString(page, " ")), " ")
}

func TestResponder_AnswersEveryReasonAsWrittenDown(t *testing.T) {
	var all strings.Builder
	formats := [numFormats]string{HTML: "page", Problem: "problem", Envelope: "envelope"}
	eachAnswer(t, func(r *Responder, reason Reason, format Format, lang string) {
		resp, body := ask(t, r, Case{
			Reason: reason, RequestID: []byte("id-1"), SKU: []byte("1001"), AcceptLanguage: []byte(lang),
			OrderLink: "/.sluice/orders/s-1?sku=1001",
		})
		if format == HTML {
			body = shown(body)
		}
		fmt.Fprintf(&all, "%s %s %s: %d %s %s %s\n", reason, formats[format], lang, resp.StatusCode,
			resp.Header.Get("Content-Type"), resp.Header.Get("Retry-After"), strings.TrimSpace(body))
	})
	const golden = "testdata/answers.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(all.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(lines)) {
		if i >= len(got) || i >= len(lines) || got[i] != lines[i] {
			t.Fatalf("line %d of %s differs (to accept it: -update):\n%s", i+1, golden, got[min(i, len(got)-1)])
		}
	}
}

// Of an order that was placed and cancelled later no one reads that it was not placed.
func TestResponder_CancelledOrderThatWasPlaced(t *testing.T) {
	for lang, want := range map[string]string{
		"en":    "This order was cancelled. It was placed, and cancelled later. This request has placed no new order.",
		"zh-CN": "该订单已取消。此前下单成功，之后被取消。本次请求没有产生新的订单",
	} {
		_, body := ask(t, responder(t, nil), Case{Reason: Released, MayHaveOrdered: true, AcceptLanguage: []byte(lang)})
		if !strings.Contains(body, want) {
			t.Errorf("%s, want %s", body, want)
		}
	}
}

func TestResponder_AllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for format := HTML; format < numFormats; format++ {
		r := responder(t, func(o *Options) { o.Format, o.Jitter = format, time.Second })
		c := Case{
			Detail: Detail{UserMissing, "$cookie_uid"}, Wait: time.Second,
			RequestID: []byte("0123456789abcdef0123456789abcdef"), SKU: []byte("1001"),
			OrderLink: "/.sluice/orders/s-1?sku=1001", RetryPath: []byte("/a?b=c&d=e"), BackPath: []byte("/a?b=c&d=e"),
			Accept: browser, AcceptLanguage: []byte("en-GB,en;q=0.9,zh;q=0.5"), Origin: []byte("https://shop.example"),
		}
		var out fasthttp.Response
		var text server.Prepared
		reason := Admitted
		if n := testing.AllocsPerRun(20*int(NumReasons), func() {
			if reason++; reason == NumReasons {
				reason = Admitted + 1
			}
			c.Reason = reason
			r.Write(&out, &text, &c)
		}); n != 0 {
			t.Errorf("format %d: %v allocations", format, n)
		}
	}
}

func TestResponder_SaysThatThereIsNoOrderOnlyWhereThatIsKnown(t *testing.T) {
	eachAnswer(t, func(r *Responder, reason Reason, format Format, lang string) {
		if format == Envelope {
			return
		}
		i := english
		if lang == languageTags[chinese] {
			i = chinese
		}
		_, body := ask(t, r, Case{Reason: reason, AcceptLanguage: []byte(lang)})
		_, main, _ := strings.Cut(body, "<main>")
		says := strings.Contains(body, messages[notOrdered].in[i])
		switch {
		case reason.orderMessage() != notOrdered && says:
			t.Errorf("%s %s: denies an order", reason, lang)
		case reason.orderMessage() == notOrdered && !says, !strings.Contains(body, messages[reason.orderMessage()].in[i]):
			t.Errorf("%s %s: does not say what is known of the order: %s", reason, lang, body)
		case format == HTML && says && strings.Index(main, messages[notOrdered].in[i]) < strings.Index(main, "<h1>"):
			t.Errorf("%s %s: the order comes before the title: %s", reason, lang, main)
		}
		_, body = ask(t, r, Case{Reason: reason, AcceptLanguage: []byte(lang), MayHaveOrdered: true})
		if strings.Contains(body, messages[notOrdered].in[i]) {
			t.Errorf("%s %s: denies an order that an earlier request may have placed", reason, lang)
		}
		if reason.mayHavePlaced() != strings.Contains(body, messages[unknownYet].in[i]) {
			t.Errorf("%s %s: says that the outcome is unknown, or not, against the table: %s", reason, lang, body)
		}
	})
}

func TestResponder_CauseStandsInEachFormatAndOnlyIfThereIsOne(t *testing.T) {
	r := responder(t, nil)
	for _, c := range []struct {
		detail     Detail
		json, html string
	}{
		{Detail{UserMissing, "$cookie_uid"}, `"cause":"user missing: $cookie_uid"`, "<small>user missing: $cookie_uid<"},
		{Detail{ProtocolRule, "space before colon"}, `"cause":"space before colon"`, "<small>space before colon</small>"},
		{Detail{SKUInvalid, `$x"<b>\`}, `"cause":"sku invalid: $x\u0022\u003cb\u003e\u005c"`, "$x&#34;&#60;b&#62;&#92;<"},
		{Detail{SKUInvalid, "a\nb"}, `"cause":"sku invalid: a\u000ab"`, "sku invalid: a&#10;b"},
		{Detail{}, "", ""},
	} {
		_, page := ask(t, r, Case{Reason: BadRequest, Detail: c.detail, Accept: browser})
		_, problem := ask(t, r, Case{Reason: BadRequest, Detail: c.detail})
		if c.json == "" {
			if strings.Contains(problem, `"cause"`) || strings.Count(page, "<small>") != 1 {
				t.Errorf("a cause without a detail: %s %s", problem, page)
			}
			continue
		}
		if !strings.Contains(problem, c.json) || !json.Valid([]byte(problem)) || !strings.Contains(page, c.html) {
			t.Errorf("%+v: %s %s", c.detail, problem, page)
		}
	}
	r = responder(t, func(o *Options) { o.Format, o.EnvelopeBody = Envelope, `{"msg":"$message","detail":"$detail"}` })
	c := Case{Reason: BadRequest, Detail: Detail{UserMissing, "$cookie_uid"}, AcceptLanguage: []byte("en")}
	const want = `{"msg":"The request is incomplete or invalid","detail":"user missing: $cookie_uid"}`
	if _, got := ask(t, r, c); got != want {
		t.Error(got)
	}
}

// A shopper who asks why sends what the page says: it names the limit that was reached, as the problem does.
func TestResponder_PageNamesTheLimit(t *testing.T) {
	r := responder(t, nil)
	_, page := ask(t, r, Case{Reason: Window, Limit: "limits.window", Accept: browser})
	_, problem := ask(t, r, Case{Reason: Window, Limit: "limits.window"})
	if !strings.Contains(page, "<small>limits.window</small>") || !strings.Contains(problem, `"limit":"limits.window"`) {
		t.Errorf("the limit is missing: %s %s", problem, page)
	}
	if _, page = ask(t, r, Case{Reason: Window, Accept: browser}); strings.Count(page, "<small>") != 1 {
		t.Errorf("a limit without a name: %s", page)
	}
}

func TestResponder_RetryAfterIsRoundedUpAndBounded(t *testing.T) {
	r := responder(t, nil)
	for _, c := range []struct {
		reason Reason
		wait   time.Duration
		want   string
	}{
		{Rate, 0, "1"},
		{Rate, 1, "1"},
		{Rate, time.Second + 1, "2"},
		{Rate, 1 << 62, strconv.FormatInt(int64(maxWait/time.Second), 10)},
		{Paused, time.Second, "10"},
		{SoldOut, 0, ""},
		{SoldOut, 1500 * time.Millisecond, "2"},
		{UpstreamTimeout, time.Second, ""},
		{NotStarted, 0, ""},
		{NotStarted, 2500 * time.Millisecond, "3"},
		{NotStarted, time.Hour, "60"},
	} {
		resp, body := ask(t, r, Case{Reason: c.reason, Wait: c.wait})
		if got := resp.Header.Get("Retry-After"); got != c.want {
			t.Errorf("%s after %v: Retry-After %q, want %q", c.reason, c.wait, got, c.want)
		}
		if c.want != "" && c.reason != SoldOut && !strings.Contains(body, `"retry_after":`+c.want+",") {
			t.Errorf("%s after %v: %s", c.reason, c.wait, body)
		}
	}
	r = responder(t, func(o *Options) { o.Jitter = 4 * time.Second })
	for range 100 {
		resp, _ := ask(t, r, Case{Reason: Rate, Wait: time.Second})
		if n, _ := strconv.Atoi(resp.Header.Get("Retry-After")); n < 1 || n > 5 {
			t.Fatalf("Retry-After %d with a jitter of 4 s", n)
		}
	}
}

func TestResponder_RedirectsBrowsersOnly(t *testing.T) {
	r := responder(t, func(o *Options) {
		o.Answers[Busy] = Answer{Status: 429, RetryAfter: time.Second, Redirect: "/wait.html"}
	})
	resp, body := ask(t, r, Case{Reason: Window, Accept: browser})
	location, retry := resp.Header.Get("Location"), resp.Header.Get("Retry-After")
	if resp.StatusCode != 303 || location != "/wait.html" || body != "" || retry != "" {
		t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
	}
	resp, body = ask(t, r, Case{Reason: Window, Accept: program})
	location, retry = resp.Header.Get("Location"), resp.Header.Get("Retry-After")
	if resp.StatusCode != 429 || location != "" || retry != "1" || body == "" {
		t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
	}
}

func TestResponder_RawIsAWholeAnswerThatEndsTheConnection(t *testing.T) {
	for format := range numFormats {
		r := responder(t, func(o *Options) { o.Format = format })
		resp, body := answered(t, r.Raw(IPConns))
		if resp.StatusCode != r.RawStatus(IPConns) || !resp.Close || resp.ContentLength != int64(len(body)) || body == "" {
			t.Errorf("format %d: %d %v %q", format, resp.StatusCode, resp.Header, body)
		}
		want := map[bool]int{false: 429, true: 200}[format == Envelope]
		if resp.StatusCode != want {
			t.Errorf("format %d: status %d, want %d", format, resp.StatusCode, want)
		}
	}
}

func TestResponder_EnvelopeKeepsTheStatusOfAnUnknownOutcome(t *testing.T) {
	r := responder(t, func(o *Options) { o.Format, o.EnvelopeStatus = Envelope, 0 })
	for reason, want := range map[Reason]int{SoldOut: 200, Internal: 200, UpstreamError: 502, UpstreamTimeout: 504} {
		if resp, _ := ask(t, r, Case{Reason: reason}); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", reason, resp.StatusCode, want)
		}
	}
}

func TestResponder_HeaderFieldsFollowTheCase(t *testing.T) {
	c := Case{
		Reason: InProgress, OrderLink: "/.sluice/orders/s?sku=1", RequestID: []byte("id-7"),
		Origin: []byte("https://a.example"), AcceptLanguage: []byte("en"),
	}
	resp, body := ask(t, responder(t, func(o *Options) { o.RateFields = true }), c)
	for name, want := range map[string]string{
		"Link": `</.sluice/orders/s?sku=1>; rel="status"`, "X-Request-Id": "id-7", "X-Sluice-Reason": "in_progress",
		"Cache-Control": "no-store", "Vary": "Accept, Accept-Language, Origin",
		"Content-Language": "en", "Access-Control-Allow-Origin": "https://a.example",
		"Access-Control-Allow-Credentials": "true",
		"Access-Control-Expose-Headers": "Link, Retry-After, ETag, Sluice-Time, X-Request-Id, X-Sluice-Reason, " +
			"RateLimit, RateLimit-Policy",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(body, `"order":"/.sluice/orders/s?sku=1"`) {
		t.Errorf("the body does not name the order: %s", body)
	}
	resp, _ = ask(t, responder(t, func(o *Options) { o.Origins, o.RequestIDHeader = nil, "" }), c)
	for _, name := range []string{"X-Request-Id", "Access-Control-Allow-Origin"} {
		if got, there := resp.Header[name]; there {
			t.Errorf("%s: %q although it is switched off", name, got)
		}
	}
	c.Origin = []byte("https://a\x01.example")
	if resp, _ = ask(t, responder(t, nil), c); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("an Origin with a control byte is reflected: %v", resp.Header)
	}
	c.Reason = SoldOut
	if resp, body := ask(t, responder(t, nil), c); resp.Header.Get("Link") != "" || strings.Contains(body, `"order"`) {
		t.Errorf("sold_out links to an order: %v %s", resp.Header, body)
	}
	resp, _ = ask(t, responder(t, nil), Case{Reason: Unidentified})
	if got := resp.Header.Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("WWW-Authenticate %q", got)
	}
}

// tags are the tags and attribute names of a page, and where its scripts begin and end.
var tags = regexp.MustCompile(`<[^>]*>`)
var attributeValue = regexp.MustCompile(`=("[^"]*"|'[^']*')`)

func structure(page string) string {
	var b strings.Builder
	for _, tag := range tags.FindAllString(page, -1) {
		b.WriteString(attributeValue.ReplaceAllString(tag, `=""`))
	}
	return b.String()
}

// Whatever a request holds: its answer has the same tags, and JSON stays JSON.
func FuzzResponder_RequestBytesKeepTheStructure(f *testing.F) {
	for _, s := range []string{
		"1001", `"onclick="x`, "</script><script>", "javascript:x", "`${x}`\\", "\xff\xfe\x00\r\n", "/a?b=1&c=2#d",
		"//evil.example", `\"`,
	} {
		f.Add(s, s, s)
	}
	own := `<a href='$back' title="$sku">$request_id</a><script>var a="$sku",b='$back',c="$request_id"</script>`
	r := responder(f, func(o *Options) { o.Pages = PageFiles{"", map[string]string{"sold_out.html": own}} })
	f.Fuzz(func(t *testing.T, sku, id, path string) {
		for _, reason := range []Reason{NotStarted, SoldOut, InProgress, Window} {
			write := func(accept []byte, sku, id, path string) string {
				var out fasthttp.Response
				var text server.Prepared
				r.Write(&out, &text, &Case{
					Reason: reason, SKU: []byte(sku), RequestID: []byte(id), OrderLink: path, RetryPath: []byte(path),
					BackPath: []byte(path), Accept: accept, Wait: time.Second,
				})
				return string(out.Body())
			}
			want := structure(write(browser, "1", "1", "/"))
			if got := structure(write(browser, sku, id, path)); got != want {
				t.Errorf("%s: tags\n%s\nwant\n%s", reason, got, want)
			}
			if got := write(program, sku, id, path); !json.Valid([]byte(got)) {
				t.Errorf("%s: no JSON: %s", reason, got)
			}
			head, _, _ := bytes.Cut(written(r, &Case{Reason: reason, OrderLink: path}), []byte("\r\n\r\n"))
			if n := bytes.Count(head, []byte("\r\n")); bytes.Count(head, []byte("\n")) != n {
				t.Errorf("%s: a header line was split: %q", reason, head)
			}
		}
	})
}
