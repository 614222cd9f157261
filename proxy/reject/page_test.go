package reject

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// eachPage calls f with every built-in page.
func eachPage(t *testing.T, f func(reason Reason, lang, text string)) {
	r := responder(t, func(o *Options) { o.Jitter = 2 * time.Second })
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		for _, lang := range languageTags {
			_, text := ask(t, r, Case{
				Reason: reason, Wait: 42 * time.Second, Accept: browser, AcceptLanguage: []byte(lang),
				RequestID: []byte("0123456789abcdef0123456789abcdef"), SKU: []byte("1001"),
			})
			f(reason, lang, text)
		}
	}
}

func TestPage_StandsAlone(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)\b(src|srcset|action)=|<link|<img|@import|url\(|https?:`)
	const icon = `<link rel="icon" href="data:,">` // without it each browser asks for /favicon.ico as well
	eachPage(t, func(reason Reason, lang, text string) {
		text, rest, found := strings.Cut(text, icon)
		if text += rest; !found {
			t.Errorf("%s %s: it has no icon", reason, lang)
		}
		if m := elsewhere.FindString(text); m != "" {
			t.Errorf("%s %s: asks for something else: %q", reason, lang, m)
		}
		if strings.Contains(text, "$") || strings.Contains(text, "<!--") {
			t.Errorf("%s %s: a placeholder or condition is left: %s", reason, lang, text)
		}
	})
}

func TestPage_IsAccessible(t *testing.T) {
	eachPage(t, func(reason Reason, lang, text string) {
		must := []string{
			`<html lang="` + lang + `">`, "<title>", "<h1>", "<main>", `role="status"`, `name="viewport"`,
			"prefers-color-scheme:dark", "min-width:44px;min-height:44px", "a:focus-visible{outline:",
		}
		if class := reason.Class(); class == NotStartedClass || class == Busy {
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
func TestPage_HasContrastInLightAndDark(t *testing.T) {
	_, text := ask(t, responder(t, nil), Case{Reason: SoldOut, Accept: browser})
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

func TestPage_OfNotStartedShowsTheStart(t *testing.T) {
	r := responder(t, nil)
	starts := time.Date(2026, 11, 29, 20, 0, 0, 0, time.FixedZone("", 8*3600))
	const shown = `<time id="at" datetime="2026-11-29T12:00:00Z">2026-11-29 12:00 UTC</time>`
	for _, c := range []struct {
		reason Reason
		starts time.Time
		want   bool
	}{{NotStarted, starts, true}, {NotStarted, time.Time{}, false}, {SoldOut, starts, false}} {
		_, text := ask(t, r, Case{Reason: c.reason, Wait: time.Hour, Starts: c.starts, Accept: browser})
		if strings.Contains(text, shown) != c.want || strings.Contains(text, "<time") != c.want {
			t.Errorf("%s starting at %v: %s", c.reason, c.starts, text)
		}
	}
}

func TestProblem_TitleAndDetailAreInTheClientsLanguage(t *testing.T) {
	r := responder(t, nil)
	for reason := Admitted + 1; reason < NumReasons; reason++ {
		for i, lang := range languageTags {
			_, text := ask(t, r, Case{Reason: reason, Accept: program, AcceptLanguage: []byte(lang)})
			title := [...]string{table[reason].en, table[reason].zh}[i]
			begin := fmt.Sprintf(`{"type":"urn:problem-type:sluice:%s","title":"%s","detail":"%s`, reason, title, title)
			if !strings.HasPrefix(text, begin) || strings.Contains(text, `"sku"`) {
				t.Errorf("%s %s: %s, want %s … without a SKU", reason, lang, text, begin)
			}
		}
	}
}

func TestPage_OfNotStartedGoesOnByItselfAtTheStart(t *testing.T) {
	r := responder(t, func(o *Options) { o.Jitter = 2 * time.Second })
	ask := func(wait time.Duration) string {
		_, text := ask(t, r, Case{Reason: NotStarted, Wait: wait, Accept: browser, AcceptLanguage: []byte("en"),
			RetryPath: []byte("/search/")})
		return text
	}
	for wait, clock := range map[time.Duration]string{
		42 * time.Second: "0:42", 3599*time.Second + 1: "1:00:00", 61*time.Minute + 5*time.Second: "1:01:05",
		25 * time.Hour: "1 day 1:00:00", 49*time.Hour + 5*time.Minute: "2 days 1:05:00", 48 * time.Hour: "2 days 0:00:00",
	} {
		text := ask(wait)
		for _, part := range []string{
			">" + clock + "</b>", fmt.Sprintf(`data-ms="%d"`, wait.Milliseconds()), `data-go="/search/"`, `data-jitter="2000"`,
		} {
			if !strings.Contains(text, part) {
				t.Errorf("%v: lacks %s: %s", wait, part, text)
			}
		}
		least := int(min(wait, maxStartWait) / time.Second)
		refresh := regexp.MustCompile(`<noscript><meta http-equiv="refresh" content="(\d+);url=/search/">`)
		m := refresh.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%v: does not come again without a script: %s", wait, text)
		}
		if n, _ := strconv.Atoi(m[1]); n < least || n > least+3 {
			t.Errorf("%v: comes again after %d s, want %d to %d", wait, n, least, least+3)
		}
	}
	text := ask(0)
	if !strings.Contains(text, fmt.Sprintf(`content="%d;`, soonest)) || strings.Contains(text, `data-ms="0"`) {
		t.Errorf("a start at an unknown time: the page must not come at once: %s", text)
	}
}

// No other page may leave by itself: the client may be about to read what became of its order.
func TestPage_OfAnyOtherReasonStays(t *testing.T) {
	eachPage(t, func(reason Reason, lang, text string) {
		leaves := strings.Contains(text, "data-go=") || strings.Contains(text, "http-equiv")
		if leaves != (reason == NotStarted) {
			t.Errorf("%s %s: leaves by itself %v", reason, lang, leaves)
		}
	})
}

func TestPage_LeadsToRetryPathWhereItWaitsElseToBackPath(t *testing.T) {
	r := responder(t, nil)
	for path, want := range map[string]string{
		"":                                 "/",
		"/":                                "/",
		"/item?id=1&from=a":                "/item?id=1&amp;from=a",
		"/list#top":                        "/list",
		"/%E5%95%86;a=1?x=1":               "/%E5%95%86;a=1?x=1",
		"//evil.example/":                  "/",
		"https://evil.example/":            "/",
		"/\"onclick=x":                     "/",
		"/a<b":                             "/",
		"/a b":                             "/",
		"/" + string([]byte{200}):          "/",
		"/" + strings.Repeat("a", maxPath): "/",
	} {
		for reason, c := range map[Reason]Case{
			Window:     {RetryPath: []byte(path), BackPath: []byte("/other")},
			NotStarted: {RetryPath: []byte(path), BackPath: []byte("/other")},
			SoldOut:    {BackPath: []byte(path), RetryPath: []byte("/other")},
		} {
			c.Reason, c.Accept, c.Wait = reason, browser, time.Minute
			if _, text := ask(t, r, c); !strings.Contains(text, `<a href="`+want+`">`) {
				t.Errorf("%s of %.50q: want it to lead to %s: %s", reason, path, want, text)
			}
		}
	}
}

func TestPage_OwnTemplateIsChosenByClassAndLanguage(t *testing.T) {
	own := map[string]string{
		"sold_out.html":  `<a href='$back' title='$sku'>$title</a>$lang`,
		"page.en.html":   `any $reason $status $class`,
		"paused.en.html": "paused",
		"paused.html":    "other $lang",
		"README":         "any",
	}
	r := responder(t, func(o *Options) { o.Pages = PageFiles{"pages", own} })
	for _, c := range []struct {
		reason     Reason
		lang, want string
	}{
		{SoldOut, "en", `<a href='/x' title='a-1'>Sold out</a>en`},
		{SoldOut, "zh", `<a href='/x' title='a-1'>已售罄</a>zh-CN`},
		{Paused, "en", "paused"},
		{Paused, "zh", "other zh-CN"},
		{Ended, "en", "any ended 403 ended"},
		{UpstreamError, "en", "any upstream_error 502 upstream"},
		{Ended, "zh", "<!doctype html>"},
	} {
		_, got := ask(t, r, Case{
			Reason: c.reason, AcceptLanguage: []byte(c.lang), Accept: browser, SKU: []byte("a-1"), BackPath: []byte("/x"),
		})
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.reason, c.lang, got, c.want)
		}
	}
}

func TestPage_ConditionsOfTheRequestAreDecidedPerRequest(t *testing.T) {
	const own = `<!-- if sku -->S$sku<!-- end --><!-- if not sku -->none<!-- end -->` +
		`<!-- if order --><!-- if cause -->C$cause <!-- end -->O$order<!-- end --><!-- if waits -->W<!-- end -->.`
	r := responder(t, func(o *Options) { o.Pages = PageFiles{"", map[string]string{"page.html": own}} })
	for _, c := range []struct {
		c    Case
		want string
	}{
		{Case{Reason: InProgress}, "none."},
		{Case{Reason: InProgress, SKU: []byte("1")}, "S1."},
		{Case{Reason: InProgress, SKU: []byte("'")}, "none."},
		{Case{Reason: InProgress, OrderLink: "/o"}, "noneO/o."},
		{Case{Reason: InProgress, OrderLink: "/o", Detail: Detail{Cause: SKUInvalid}}, "noneCsku invalid O/o."},
		{Case{Reason: SoldOut, OrderLink: "/o", Detail: Detail{Cause: SKUInvalid}}, "none."},
		{Case{Reason: Window, SKU: []byte("1")}, "S1W."},
	} {
		c.c.Accept = browser
		if _, got := ask(t, r, c.c); got != c.want {
			t.Errorf("%+v: %q, want %q", c.c, got, c.want)
		}
	}
}

func TestPage_FileThatCannotBeUsedIsRejectedWithItsLine(t *testing.T) {
	for name, want := range map[string]string{
		"busy.en.html\n\n$titel":                     "pages/busy.en.html:2: $titel is not known; did you mean $title?",
		"soldout.html\nx":                            "pages/soldout.html: is no page; name it page.html, or after a",
		"page.12.html\nx":                            `pages/page.12.html: "12" is no language`,
		"page..html\nx":                              `pages/page..html: "" is no language`,
		"ja.toml\nsold_out = \"x\"\nsoldout = \"y\"": "pages/ja.toml:2: key soldout is not known; did you mean sold_out?",
		"ja.toml\nsold_out = \"x":                    "pages/ja.toml:1: ",
		"ja.toml\nsold_out = 7":                      "pages/ja.toml: ",
		"ja.toml\nroom_eta = \"{n}\"":                "pages/ja.toml:1: room_eta has no number {n}; write a time as {time}",
		"ja.toml\n\nsold_out = \"\\u0005\"":          "pages/ja.toml:2: sold_out has a control character",
		"japanese.toml\n":                            `pages/japanese.toml: "japanese" is no language`,
	} {
		file, text, _ := strings.Cut(name, "\n")
		o := testOptions()
		o.Pages = PageFiles{"pages", map[string]string{file: text}}
		if _, err := New(o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s …", name, err, want)
		}
	}
}
