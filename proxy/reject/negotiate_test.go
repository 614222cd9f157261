package reject

import (
	"strings"
	"testing"
)

func TestChooseFormat_BrowsersGetPagesAndProgramsJSON(t *testing.T) {
	r := responder(t, nil)
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
		resp, _ := ask(t, r, Case{Reason: SoldOut, Accept: []byte(accept)})
		if got := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html"); got != html {
			t.Errorf("Accept %q: a page %v, want %v", accept, got, html)
		}
	}
}

func TestLocales_ChooseByAcceptLanguage(t *testing.T) {
	files := map[string]string{
		"ja.toml":    "sold_out = \"売り切れ\"\nnot_ordered = \"注文されていません。\"\n",
		"zh-TW.toml": `sold_out = "已售罄了"`,
	}
	r := responder(t, func(o *Options) { o.Pages = PageFiles{"pages", files} })
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
		"ja, en":                                "ja",
		"ja;q=0.2, fr":                          "ja",
	} {
		resp, body := ask(t, r, Case{Reason: SoldOut, Accept: browser, AcceptLanguage: []byte(accept)})
		if got := resp.Header.Get("Content-Language"); got != want || !strings.Contains(body, `lang="`+want+`"`) {
			t.Errorf("Accept-Language %q: %s, want %s", accept, got, want)
		}
	}
	_, page := ask(t, r, Case{Reason: SoldOut, Accept: browser, AcceptLanguage: []byte("ja")})
	for _, part := range []string{"<h1>売り切れ</h1>", "注文されていません。", messages[goBack].in[english]} {
		if !strings.Contains(page, part) {
			t.Errorf("a language by a file: lacks %q: %s", part, page)
		}
	}
	_, body := ask(t, r, Case{Reason: SoldOut, AcceptLanguage: []byte("ja")})
	if !strings.Contains(body, `"title":"売り切れ","detail":"売り切れ。`) {
		t.Errorf("programs read the same language: %s", body)
	}
}

func TestLocales_UnknownLanguageIsRejected(t *testing.T) {
	for want, o := range map[string]Options{
		`languages: "ja" is not known`: {Languages: []string{"en", "ja"}},
		"languages: there are 0":       {},
		"":                             {Languages: []string{"ja"}, Pages: PageFiles{"d", map[string]string{"ja.toml": ""}}},
	} {
		_, err := New(o)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v: %v, want %q", o.Languages, err, want)
		}
	}
}
