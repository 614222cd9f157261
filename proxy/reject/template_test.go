package reject

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestTemplate_UnusableTextIsRejectedWithLineAndRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"\n$titel":                            "f:2: $titel is not known; did you mean $title? A dollar sign is $$",
		"$nothing_like_this":                  "f:1: $nothing_like_this is not known; write one of $title $detail",
		"$Title":                              "did you mean $title?",
		"\n\n{{.Title}}":                      "f:3: {{.Title}} is not supported; write $title",
		"a\n<!-- if waits -->\n":              "f:2: the block has no <!-- end -->",
		"a\n\n<!-- end -->":                   "f:3: <!-- end --> closes no block",
		"<!-- if wait --><!-- end -->":        `f:1: condition "wait" is not known; did you mean waits?`,
		"<!-- if -->":                         `f:1: condition "" is not known; write one of waits opens`,
		"<!-- if waits --><!-- end waits -->": "f:1: <!-- end --> closes no block",
	} {
		if _, err := parse("f", text, pageTerms); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

// filled is a template with fixed values and one field of the request.
func filled(t testing.TB, text string, texts map[string]string, holds map[string]bool, sku string) (string, error) {
	t.Helper()
	parsed, err := parse("f", text, pageTerms)
	if err != nil {
		return "", err
	}
	v := newValues(sku)
	return string(parsed.body(texts, holds).append(nil, &v)), nil
}

func newValues(sku string) values {
	return values{c: &Case{}, format: HTML, sku: plain([]byte(sku), HTML)}
}

func TestTemplate_PlaceholdersAndBlocks(t *testing.T) {
	texts := map[string]string{"title": "T", "detail": "D"}
	holds := map[string]bool{"waits": true, "opens": false}
	for text, want := range map[string]string{
		"":                                   "",
		"plain $5 $( ${x} $":                 "plain $5 $( ${x} $",
		"$title$detail-$title_":              "",
		"$title.$detail":                     "T.D",
		"$$title costs $$5":                  "$title costs $5",
		"a<!-- if waits -->b<!-- end -->c":   "abc",
		"a<!--if opens-->b$title<!--end-->c": "ac",
		"a<!-- if not opens -->b<!-- end -->c<!-- if not  waits -->d<!-- end -->": "abc",
		"<!-- if opens --><!-- if waits -->x<!-- end -->y<!-- end -->z":           "z",
		"<!-- if sku --><!-- if opens -->x<!-- end -->$sku<!-- end -->z":          "7z",
		"<!-- if not sku -->x<!-- if waits -->y<!-- end -->$sku<!-- end -->z":     "z",
		"<!-- ours --><!--[if IE]>x<![endif]-->":                                  "<!-- ours --><!--[if IE]>x<![endif]-->",
	} {
		got, err := filled(t, text, texts, holds, "7")
		if got != want || err != nil && want != "" {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
	}
}

var hostileTexts = []string{"plain", `"'><script>alert(1)</script>&` + "`${x}`\\", "售罄 +-->*/"}

func TestTemplate_TextsAreEscapedInEveryFormat(t *testing.T) {
	special := regexp.MustCompile("[\"'<>`\\\\\n]|&[^#]")
	for _, text := range hostileTexts {
		if got := string(appendEscaped(nil, text, HTML)); special.MatchString(got) {
			t.Errorf("%q on a page: %q", text, got)
		}
		l := locale{tag: "ja", texts: map[string]string{"sold_out": text, "not_ordered": text}}
		r := responder(t, nil)
		n := renderer{Options: testOptions(), files: &templates{}}
		n.files.builtIn, _ = parse("f", `<p title="$title">$detail</p>`, pageTerms)
		n.problem, _ = parse("problem", problemText, problemTerms)
		n.envelope, _ = parse("envelope", n.EnvelopeBody, envelopeTerms)
		r.answers[SoldOut][0] = n.variants(SoldOut, n.answer(SoldOut), &l)
		_, page := ask(t, r, Case{Reason: SoldOut, Accept: browser})
		if structure(page) != `<p title=""></p>` {
			t.Errorf("%q left its place: %s", text, page)
		}
		for _, format := range []Format{Problem, Envelope} {
			r.format = format
			if _, body := ask(t, r, Case{Reason: SoldOut}); !json.Valid([]byte(body)) {
				t.Errorf("%q: no JSON: %s", text, body)
			}
		}
	}
}

// Whatever a template is, it is rejected with its line, or no value leaves its place.
func FuzzTemplate_ValuesStayInTheirPlaces(f *testing.F) {
	for _, text := range []string{
		builtInHead + builtInPage, `<p title="$title"><!-- if waits -->$hint<!-- end -->`, `<script>x='$sku'</script>$$`,
		"<!-- if not sku -->", "<!-- if sku --><!-- if opens -->$sku<!-- end --><!-- end -->", "$", "{{.Title}}",
		"<!-- end -->",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		fill := func(free, sku string, waits bool) (string, error) {
			texts := map[string]string{}
			for _, name := range pageTerms.placeholders {
				if _, ofRequest := fields[name]; !ofRequest || name == "detail" {
					texts[name] = string(appendEscaped(nil, free, HTML))
				}
			}
			return filled(t, text, texts, map[string]bool{"waits": waits, "opens": !waits, "lead": waits, "hint": true}, sku)
		}
		for _, waits := range []bool{false, true} {
			tame, err := fill("plain", "", waits)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "f:") {
					t.Errorf("no line: %v", err)
				}
				return
			}
			for _, hostile := range hostileTexts {
				wild, err := fill(hostile, "\"'<>", waits)
				if err != nil {
					t.Fatal(err)
				}
				for _, sign := range []string{"<", ">", `"`, "'", "`", `\`, "\n"} {
					if strings.Count(tame, sign) != strings.Count(wild, sign) {
						t.Errorf("a value left its place by %q:\n%s\n%s", sign, tame, wild)
					}
				}
			}
		}
	})
}
