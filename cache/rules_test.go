package cache

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/proxy"
	"sluice/upstream"
)

func TestCache_WithoutAWordFromTheShopTheRouteDecides(t *testing.T) {
	d := open(t)
	d.says(200, "", "one")
	d.want(t, "one", 1, "/p")
	d.says(200, "", "two")
	d.pass(999 * time.Millisecond)
	d.want(t, "one", 1, "/p")
	d.pass(2 * time.Millisecond)
	d.want(t, "two", 2, "/p")
}

// RFC 9111, section 3, and 5.2.2: what must not be stored.
func TestCache_WhatIsNotForOthersIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header string
	}{
		"no-store":           {200, "Cache-Control: no-store"},
		"private":            {200, "Cache-Control: max-age=60, private"},
		"private field":      {200, `Cache-Control: private="x-user", max-age=60`},
		"no-cache":           {200, "Cache-Control: no-cache\nEtag: \"a\""},
		"no-cache field":     {200, `Cache-Control: max-age=9, no-cache="set-cookie, x"`},
		"two lines":          {200, "Cache-Control: max-age=60\nCache-Control: NO-STORE"},
		"semicolons":         {200, "Cache-Control: private; max-age=60"},
		"no commas":          {200, "Cache-Control: public max-age=60 private"},
		"an open quote":      {200, `Cache-Control: "private`},
		"behind a number":    {200, "Cache-Control: max-age=60; private"},
		"Pragma":             {200, "Pragma: no-cache"},
		"max-age 0":          {200, "Cache-Control: max-age=0"},
		"max-age no number":  {200, "Cache-Control: max-age=soon"},
		"max-age twice":      {200, "Cache-Control: max-age=60, max-age=0"},
		"s-maxage 0":         {200, "Cache-Control: max-age=60, s-maxage=0"},
		"expired":            {200, "Date: Fri, 20 Nov 2026 20:00:00 GMT\nExpires: Fri, 20 Nov 2026 20:00:00 GMT"},
		"Expires 0":          {200, "Expires: 0"},
		"Expires twice":      {200, "Expires: Fri, 20 Nov 2026 20:01:00 GMT\nExpires: Fri, 20 Nov 2026 20:02:00 GMT"},
		"a cookie":           {200, "Set-Cookie: sid=1"},
		"a cookie, public":   {200, "Cache-Control: public, max-age=60\nSet-Cookie: sid=1"},
		"Vary *":             {200, "Vary: *"},
		"Vary by too much":   {200, "Vary: a,b,c,d,e,f,g,h,i"},
		"a part":             {206, "Cache-Control: max-age=60\nContent-Range: bytes 0-2/9"},
		"a status unheard":   {201, ""},
		"an error":           {500, ""},
		"too old by Age":     {200, "Cache-Control: max-age=60\nAge: 60"},
		"too old by Date":    {200, "Cache-Control: max-age=60\nDate: Fri, 20 Nov 2026 19:58:00 GMT"},
		"found, not for how": {302, "Location: /x"},
		"must-understand":    {599, "Cache-Control: max-age=60, must-understand"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.says(c.status, c.header, "x")
			d.want(t, "x", 1, "/p")
			d.want(t, "x", 2, "/p")
		})
	}
}

func TestCache_WhatMayBeGivenToOthersIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header string
	}{
		"nothing said":         {200, ""},
		"not found":            {404, ""},
		"moved":                {301, "Location: /x"},
		"found, with a time":   {302, "Location: /x\nCache-Control: max-age=5"},
		"an error with a time": {503, "Cache-Control: max-age=5"},
		"max-age":              {200, "Cache-Control: max-age=5"},
		"quoted":               {200, `Cache-Control: max-age="5"`},
		"upper case":           {200, `CACHE-CONTROL: Max-Age=5`},
		"s-maxage first":       {200, `Cache-Control: s-maxage=5, max-age=0`},
		"max-age over Expires": {200, "Cache-Control: max-age=5\nExpires: 0"},
		"unknown directive":    {200, `Cache-Control: foo="a, no-store", max-age=5`},
		"a number too large":   {200, "Cache-Control: max-age=99999999999999999999"},
		"Expires":              {200, "Expires: Fri, 20 Nov 2026 20:01:00 GMT"},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.says(c.status, c.header, "x")
			d.want(t, "x", 1, "/p")
			if resp := d.want(t, "x", 1, "/p"); resp.StatusCode() != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode(), c.status)
			}
		})
	}
}

func TestCache_TheRouteBoundsWhatTheShopAllows(t *testing.T) {
	d := open(t)
	d.says(200, "Cache-Control: max-age=3600", "one")
	d.want(t, "one", 1, "/p")
	d.says(200, "Cache-Control: max-age=3600", "two")
	d.pass(freshFor)
	d.want(t, "two", 2, "/p")
}

// RFC 9111, sections 4.2.3 and 5.1.
func TestCache_AgeIsToldAndCounts(t *testing.T) {
	d := open(t)
	d.says(200, "Cache-Control: max-age=60\nAge: 58", "x")
	if got := d.want(t, "x", 1, "/p").Header.Peek("Age"); string(got) != "58" {
		t.Errorf("Age %q, want 58", got)
	}
	d.pass(900 * time.Millisecond)
	d.want(t, "x", 1, "/p")
	d.pass(100 * time.Millisecond)
	d.says(500, "", "")
	if got := d.want(t, "x", 2, "/p").Header.Peek("Age"); string(got) != "59" {
		t.Errorf("Age %q, want 59", got)
	}
}

// RFC 9110, section 6.6.1.
func TestCache_AnswerWithoutADateIsGivenOne(t *testing.T) {
	d := open(t)
	d.says(200, "", "x")
	d.want(t, "x", 1, "/p")
	if date := string(d.want(t, "x", 1, "/p").Header.Peek("Date")); date != d.time.Format(http.TimeFormat) {
		t.Errorf("Date %q", date)
	}
}

// RFC 9111, section 4.1.
func TestCache_VaryChooses(t *testing.T) {
	d := open(t)
	d.shop = func(request string, resp *fasthttp.Response) upstream.Outcome {
		fill(resp, 200, "Vary: Accept-Language, X-Shop", strings.TrimPrefix(request, "/p\r\n"))
		return upstream.Answered
	}
	say := func(text string) {
		d.shop = func(_ string, resp *fasthttp.Response) upstream.Outcome {
			fill(resp, 200, "Vary: accept-language , X-Shop", text)
			return upstream.Answered
		}
	}
	say("zh")
	d.want(t, "zh", 1, "/p", "Accept-Language: zh")
	say("en")
	d.want(t, "en", 2, "/p", "Accept-Language: en")
	say("none")
	d.want(t, "none", 3, "/p")
	say("two")
	d.want(t, "two", 4, "/p", "Accept-Language: zh, en")
	d.want(t, "zh", 4, "/p", "Accept-Language: zh")
	d.want(t, "en", 4, "/p", "Accept-Language: en")
	d.want(t, "none", 4, "/p")
	d.want(t, "two", 4, "/p", "Accept-Language: zh,en")
	d.want(t, "two", 4, "/p", "Accept-Language: zh", "Accept-Language: en")
	say("other")
	d.want(t, "other", 5, "/p", "Accept-Language: zh", "X-Shop: 2")
}

func TestCache_CodingThatTheShopDoesNotVaryByIsNotGivenToWhoCannotReadIt(t *testing.T) {
	d := open(t)
	d.says(200, "Content-Encoding: gzip", "zipped")
	d.want(t, "zipped", 1, "/p", "Accept-Encoding: gzip")
	d.says(200, "", "plain")
	d.want(t, "plain", 2, "/p")
}

// RFC 9110, section 13.2.2; RFC 9111, section 4.3.2.
func TestCache_ClientThatHasItIsTold304(t *testing.T) {
	d := open(t)
	d.says(200, "Etag: W/\"v1\"\nLast-Modified: Fri, 20 Nov 2026 10:00:00 GMT\nCache-Control: max-age=5\nContent-Type: "+
		"text/html\nContent-Encoding: br", "x")
	d.want(t, "x", 1, "/p")
	for line, want := range map[string]int{
		`If-None-Match: "v1"`:                              304,
		`If-None-Match: "v0", W/"v1"`:                      304,
		`If-None-Match: *`:                                 304,
		`If-None-Match: "v2"`:                              200,
		`If-None-Match: v1`:                                200,
		`If-None-Match: "a,v1", "v1,b"`:                    200,
		`If-Modified-Since: Fri, 20 Nov 2026 10:00:00 GMT`: 304,
		`If-Modified-Since: Fri, 20 Nov 2026 09:59:59 GMT`: 200,
		`If-Modified-Since: yesterday`:                     200,
	} {
		resp, _ := d.get("/p", line)
		if resp.StatusCode() != want || want == 304 && len(resp.Body()) > 0 {
			t.Errorf("%s: %d with %q, want %d", line, resp.StatusCode(), resp.Body(), want)
		}
		if want == 304 && (len(resp.Header.Peek("Etag")) == 0 || len(resp.Header.Peek("Cache-Control")) == 0 ||
			len(resp.Header.Peek("Date")) == 0) {
			t.Errorf("%s: a field that 304 must have is missing: %s", line, &resp.Header)
		}
	}
	resp, _ := d.get("/p", `If-None-Match: "v2"`, "If-Modified-Since: Fri, 20 Nov 2026 10:00:00 GMT")
	if resp.StatusCode() != 200 {
		t.Errorf("If-Modified-Since counts beside If-None-Match")
	}
	if len(d.asked) != 1 {
		t.Errorf("the shop was asked %d times", len(d.asked))
	}
}

// RFC 9111, sections 4.3.1, 4.3.3, 4.3.4 and 3.2.
func TestCache_WhatIsStaleIsValidatedAndFreshened(t *testing.T) {
	d := open(t)
	d.says(200, "Etag: \"v1\"\nLast-Modified: Fri, 20 Nov 2026 10:00:00 GMT\nX-Shown: old\nContent-Type: text/html", "x")
	d.want(t, "x", 1, "/p")
	d.pass(2 * time.Second)
	d.says(304, "Etag: \"v1\"\nX-Shown: new\nContent-Type: text/plain", "")
	resp := d.want(t, "x", 2, "/p")
	if asked := d.asked[1]; !strings.Contains(asked, "If-None-Match: \"v1\"\r\n") ||
		!strings.Contains(asked, "If-Modified-Since: Fri, 20 Nov 2026 10:00:00 GMT\r\n") {
		t.Errorf("the shop was asked %q", asked)
	}
	if h := &resp.Header; resp.StatusCode() != 200 || string(h.Peek("X-Shown")) != "new" ||
		string(h.ContentType()) != "text/html" {
		t.Errorf("after 304: %s", h)
	}
	d.want(t, "x", 2, "/p") // fresh again
	d.pass(2 * time.Second)
	d.says(304, "Set-Cookie: sid=1", "")
	if resp := d.want(t, "x", 3, "/p"); resp.StatusCode() != 200 {
		t.Errorf("a client that asked for no condition is told %d", resp.StatusCode())
	}
	d.says(200, "", "y")
	d.want(t, "y", 4, "/p")
}

// A 304 that is about another body must not lend its ETag to this one: clients would keep the wrong body.
func TestRevalidation_OfAnotherBodyChangesNothing(t *testing.T) {
	for _, tag := range []string{`"v1"`, ""} {
		d := open(t)
		if tag != "" {
			d.says(200, "Etag: "+tag, "x")
		} else {
			d.says(200, "Last-Modified: Fri, 20 Nov 2026 10:00:00 GMT", "x")
		}
		d.want(t, "x", 1, "/p")
		d.pass(2 * time.Second)
		d.says(304, `Etag: "v2"`, "")
		if resp := d.want(t, "x", 2, "/p"); string(resp.Header.Peek("Etag")) != tag {
			t.Errorf("the body of %s is given with ETag %s", tag, resp.Header.Peek("Etag"))
		}
		d.pass(2 * time.Second)
		d.says(200, `Etag: "v2"`, "y")
		d.want(t, "y", 3, "/p")
	}
}

// RFC 9111, section 4.2.4; RFC 5861, section 4.
func TestCache_StaleAnswerIsGivenWhenTheShopIsAway(t *testing.T) {
	d := open(t)
	d.says(200, "", "x")
	d.want(t, "x", 1, "/p")
	d.pass(58 * time.Second)
	d.shop = func(string, *fasthttp.Response) upstream.Outcome { return upstream.NotSent }
	d.want(t, "x", 2, "/p")
	d.pass(freshFor)
	d.says(502, "", "bad")
	d.want(t, "x", 3, "/p")
	d.pass(2 * time.Second)
	if resp := d.want(t, "bad", 4, "/p"); resp.StatusCode() != 502 {
		t.Errorf("status %d", resp.StatusCode())
	}
	d.shop = func(string, *fasthttp.Response) upstream.Outcome { return upstream.TimedOut }
	if _, failed := d.get("/p"); !failed {
		t.Error("an answer of more than a minute ago is given")
	}
}

func TestCache_TheShopsWordOnStaleAnswersCounts(t *testing.T) {
	for header, stale := range map[string]bool{
		"Cache-Control: max-age=1":                      true,
		"Cache-Control: max-age=1, must-revalidate":     false,
		"Cache-Control: max-age=1, proxy-revalidate":    false,
		"Cache-Control: s-maxage=1":                     false,
		"Cache-Control: max-age=1, stale-if-error=0":    false,
		"Cache-Control: max-age=1, stale-if-error=7200": true,
	} {
		d := open(t)
		d.says(200, header, "x")
		d.want(t, "x", 1, "/p")
		d.pass(30 * time.Second)
		d.says(500, "", "bad")
		want := map[bool]string{true: "x", false: "bad"}[stale]
		if resp, _ := d.get("/p"); string(resp.Body()) != want {
			t.Errorf("%s: %q, want %q", header, resp.Body(), want)
		}
	}
}

// RFC 9111, section 4.4.
func TestCache_ForgettingAPageForgetsItsVariants(t *testing.T) {
	d := open(t)
	d.says(200, "Vary: Accept-Language", "old")
	d.want(t, "old", 1, "/p", "Accept-Language: zh")
	d.want(t, "old", 2, "/p", "Accept-Language: en")
	d.Forget(&proxy.Page{Key: []byte("/p")})
	d.says(200, "Vary: Accept-Language", "new")
	d.want(t, "new", 3, "/p", "Accept-Language: zh")
	d.want(t, "new", 4, "/p", "Accept-Language: en")
}

func TestCache_MemoryIsBounded(t *testing.T) {
	d := open(t)
	d.says(200, "", strings.Repeat("x", 10_000))
	for i := range 1000 {
		d.get("/" + strings.Repeat("p", i))
	}
	d.kept.CleanUp()
	if bytes := d.kept.WeightedSize(); bytes > 1<<20 {
		t.Errorf("%d bytes are kept, want at most %d", bytes, 1<<20)
	}
}

func TestCache_WhatAnAnswerVariesByWeighs(t *testing.T) {
	d := open(t)
	d.says(200, "Vary: X-V", "x")
	long := strings.Repeat("v", 10_000)
	d.want(t, "x", 1, "/p", "X-V: "+long)
	d.kept.CleanUp()
	if got := d.kept.WeightedSize(); got < uint64(2*len(long)) {
		t.Errorf("%d bytes, of a field of %d that is kept with the answer and in its key", got, len(long))
	}
}
