package page

import (
	htmltemplate "html/template"
	"reflect"
	"strings"
	"testing"
)

// hostile is a view whose words try to leave their place.
func hostile(words string) View {
	return View{Lang: "en", Title: words, Detail: words, Hint: words, Reason: "window", Class: "busy", Status: 429, Waits: true, JitterMS: 2000,
		RetryAfter: "7", WaitMS: "7000", Clock: "0:07", TimeLabel: words, Back: "SluiceGapHome", BackLabel: words, SKU: "a-1", RequestID: "x1"}
}

var hostileWords = []string{"", "plain", `"'><script>alert(1)</script>&amp;+` + "`${x}`\\\n</title>", "售罄\u2028]]>-->*/"}

// written is what a page with these files shows; name is the first of them.
func written(name string, files map[string]string, v View) (string, error) {
	b, err := Open("", files, []string{"busy"}, nil)
	if err != nil {
		return "", err
	}
	v.Class = strings.TrimSuffix(name, ".html")
	return b.Render(v), nil
}

// oracle is what html/template makes of the same.
func oracle(name string, files map[string]string, v View) (string, error) {
	all := htmltemplate.New("")
	for file, text := range files {
		if _, err := all.New(file).Parse(text); err != nil {
			return "", err
		}
	}
	v.Class = strings.TrimSuffix(name, ".html")
	var b strings.Builder
	err := all.ExecuteTemplate(&b, name, v)
	return b.String(), err
}

// What is supported means the same as in html/template, to the byte.
func TestPagesAreWhatHTMLTemplateMakesOfThem(t *testing.T) {
	for _, text := range []string{
		builtIn,
		`<h1>{{.Title}}</h1>{{if .Waits}}waits{{else}}no{{end}}{{if .Opens}}opens{{else if .Lead}}lead{{else}}neither{{end}}`,
		`<p title="{{.Title}}" class='{{.Class}} {{.Detail}}' data-ms="{{.WaitMS}}"{{if .Waits}} data-go="{{.Back}}"{{end}}{{if .Lead}} hidden{{end}}>x</p>`,
		`{{with .Hint}}<p>{{.}} {{$.Title}}{{with $.SKU}}{{.}}{{end}}</p>{{else}}none{{end}}`,
		`{{if eq .Reason "rate" "window"}}a{{end}}{{if ne .Status 429}}b{{else}}c{{end}}{{if not .Waits}}d{{end}}{{if eq .Lang ` + "`en`" + `}}e{{end}}`,
		"a {{- .Reason -}} b {{- /* no */ -}} c{{/* no\n */}} <b>\n\t{{- if .Waits }} x {{ end -}}\n</b>",
		`<title>{{.Title}} &amp;</title><textarea>{{.Detail}}&lt;b></textarea>`,
		`<a href="{{.Back}}" id=x >a</a><a href='/help?lang={{.Lang}}&amp;sku={{.SKU}}'>b</a><img src="/{{.Class}}.png" alt="{{.Title}}">`,
		`<a href="{{.Back}}?x={{.SKU}}#{{.RequestID}}">a</a><a href="https://shop.example/{{.SKU}}">b</a><a href=" ?a={{.SKU}}">c</a><a href="help.{{.Lang}}">d</a>`,
		`<a href="{{if .Waits}}/a{{else}}/b{{end}}?x={{.SKU}}">a</a><img src="{{.Class}}/{{.Lang}}.png"><a href="mailto:help@shop.example?subject={{.SKU}}">m</a>`,
		`<script>var a={{.Title}},b="{{.Title}}",c='x{{.Detail}}y',d={{.Status}},e={{.Waits}},f=Number({{.WaitMS}})</script>`,
		`<script>var r=/["'/]"\/{{/* none */}}/.test({{.Title}}) ? 1/2/ {{.Status}} : "\"{{.Title}}";</script>`,
		`<script>if(a<{{.Status}}){b="</scr"+"ipt>"+{{.Reason}}}</script>{{.Title}}`,
		`<script>return /'/.exec({{.Title}})</script><SCRIPT type="application/ld+json">{"name":{{.Title}},"n":{{.JitterMS}}}</SCRIPT >`,
		`<!-- of ours {{.Title}} {{if .Waits}}x{{end}} -->a<!doctype html><style>p:after{content:"{"}</style>{{.Reason}}`,
		`{{template "_top.html" .}}|{{with .Title}}{{template "_top.html" $}}{{end}}<p title="{{template "_title.html" .}}">`,
		`<p {{if .Waits}}hidden{{else}}title="x"{{end}}>a</p><br/><p title = "{{.Title}}"/>`,
	} {
		files := map[string]string{"busy.html": text, "_top.html": "<i>{{.Lang}}</i>{{template \"_title.html\" .}}", "_title.html": "{{.Title}}"}
		for _, words := range hostileWords {
			for _, turned := range []bool{false, true} {
				v := hostile(words)
				v.Lead, v.Opens, v.Waits = turned, turned, !turned
				got, err := written("busy.html", files, v)
				if err != nil {
					t.Errorf("%s: %v", text, err)
					continue
				}
				want, err := oracle("busy.html", files, v)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if got != want {
					t.Errorf("%s\nis written\n%s\nwant\n%s", text, got, want)
				}
			}
		}
	}
}

func TestWhatAPageCannotDoIsRefusedByLineAndWithAWayOut(t *testing.T) {
	for text, want := range map[string]string{
		"\n{{.Nothing}}":                              `2: {{.Nothing}}: there is no field Nothing; there are .Lang, .Title, `,
		"{{title}}":                                   `1: {{title}}: a field is written .Title`,
		"{{.Title.Long}}":                             `there is no field Title.Long`,
		"{{}}":                                        `1: nothing stands between`,
		"{{.Title | printf}}":                         `a field stands alone`,
		"{{printf \"%s\" .Title}}":                    `there are no functions`,
		"{{$x := .Title}}":                            `there are no functions, variables`,
		"{{range .Title}}{{end}}":                     `there is no {{range}} here`,
		"{{define \"x\"}}{{end}}":                     `there is no {{define}} here`,
		"{{if and .Waits .Opens}}x{{end}}":            `for two conditions, one {{if}} in another`,
		"{{if (eq .Lang \"en\")}}x{{end}}":            `write {{if .Waits}}`,
		"{{if eq .Status \"429\"}}x{{end}}":           `.Status is of another kind than "429"`,
		"{{if eq .Lang 7}}x{{end}}":                   `.Lang is of another kind than 7`,
		"{{if eq .SKU \"1001\"}}x{{end}}":             `can be shown, and not compared`,
		"{{if .Waits}}\n{{else}}\n{{else}}{{end}}":    `3: unexpected {{else}}`,
		"a\n{{if .Waits}}\n":                          `2: {{if .Waits}}: its {{end}} is missing`,
		"{{if .Waits}}{{end .}}":                      `write {{end}}`,
		"{{with .Hint}}{{else with .Title}}{{end}}":   `write {{else}}, and another action`,
		"{{with .Hint}}{{.Title}}{{end}}":             `in a {{with}}, write $.Title`,
		"{{with .Hint}}{{template \"_a\" .}}{{end}}":  `write {{template "_name.html" $}}`,
		"{{template \"_a\"}}":                         `write {{template "_name.html" .}}`,
		"{{template \"_a.html\" .}}":                  `there is no file _a.html to include`,
		"{{template \"_round.html\" .}}":              `_round.html:1: _round.html includes itself`,
		"{{template \"_bomb.html\" .}}":               `with what is included`,
		"{{.":                                         `unclosed action`,
		"\n{{/* x":                                    `2: unclosed comment`,
		"{{\"x}}":                                     `unclosed action or quote`,
		"{{.Title}":                                   `unexpected '}' in an action`,
		"<p title={{.Title}}>":                        `write title="{{.Title}}"`,
		"<p {{.Title}}>":                              `.Title stands in a tag`,
		"<{{.Title}}>":                                `cuts a tag, a name or a sign in two`,
		"<p onclick=\"go('{{.Back}}')\">":             `put it into data-…`,
		"<p style=\"color:{{.Lang}}\">":               `put it into data-…`,
		"<style>p{color:{{.Lang}}}</style>":           `.Lang stands in a <style>`,
		"<a href=\"/?q={{.Title}}\">":                 `.Title is free text, and no part of an address such as href`,
		"<a data-x=\"1\"href=\"/\"{{if .Waits}}x":     `its {{end}} is missing`,
		"<script>\n`{{.Title}}`</script>":             `2: .Title stands in a part of the script that is no code and no string: set a variable`,
		"<script>//{{.Title}}\n</script>":             `no code and no string`,
		"<script>x=/{{.Title}}/</script>":             `cuts a tag, a name or a sign in two`,
		"<script>x=/a{{.Title}}/</script>":            `no code and no string`,
		"<script>\"\n{{.Title}}\"</script>":           `no code and no string`,
		"<script>}/a\"/;{{.Title}}</script>":          `no code and no string`,
		"<script>x={{.Title}}":                        `the page ends within a <script>`,
		"<p title=\"{{.Title}}":                       `the page ends within the value of "title"`,
		"<!-- {{.Title}}":                             `the page ends within a comment`,
		"<p {{if .Waits}}title=\"{{end}}\">":          `end in different places, the value of "title" and a tag`,
		"<script>{{if .Waits}}\"{{end}}</script>":     `end in different places`,
		"<p hr{{if .Waits}}{{end}}ef=\"{{.Title}}\">": `cuts a tag, a name or a sign in two`,
		strings.Repeat("{{if .Waits}}", 40):           `more than 30 {{if}} and {{with}} in one another`,
		"a\x07":                                       `1: has a control character`,
		"<<!-- -->script>{{.Title}}":                  `a lone < in text is written &lt;`, // without the comment it would be a tag
		"</<!-- --><!-- -->title>{{.Title}}":          `a lone < in text is written &lt;`,
		"\n<a href=\"javascript:go({{.SKU}})\">":      `2: .SKU stands in an address that does not begin with / or https://`,
		"<a href=' java\nscript:{{.SKU}}'>":           `does not begin with /`,
		"<a href=\"&#106;avascript:go({{.SKU}})\">":   `does not begin with /`,
		"<a href=\"{{if .Waits}}java{{else}}data{{end}}script:{{.SKU}}\">": `does not begin with /`,
		"<a href=\"{{.Reason}}script:{{.SKU}}\">":                          `does not begin with /`,
		"<use xlink:href=\"data:x,{{.SKU}}\">":                             `does not begin with /`,
	} {
		files := map[string]string{"busy.html": text, "_round.html": `{{template "_round.html" .}}`}
		for _, next := range []string{"_bomb.html _b", "_b _c", "_c _d", "_d _e"} {
			name, to, _ := strings.Cut(next, " ")
			files[name] = strings.Repeat(`{{template "`+to+`" .}}`, 20)
		}
		files["_e"] = "x"
		_, err := Open("pages", files, []string{"busy"}, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "pages/") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
}

// Every field is either free text or means nothing wherever it stands.
func TestEveryFieldIsKnownForWhatItHolds(t *testing.T) {
	safe := append([]string{"Lang", "Lead", "Reason", "Class", "Status", "Waits", "Opens", "JitterMS"}, append(freeText, ofRequests...)...)
	if n := reflect.TypeFor[View]().NumField(); n != len(safe) {
		t.Errorf("%d fields, %d known: is the new one free text, or of a request?", n, len(safe))
	}
	for _, name := range safe {
		if kindOf(name) == reflect.Invalid {
			t.Errorf("there is no field %s", name)
		}
	}
}

// Whatever a template is: it is refused with a place, or no words can leave theirs.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{builtIn, `<p title="{{.Title}}">{{if .Waits}}{{.Hint}}{{else}}x{{end}}</p>`, `<script>x={{.Title}};y='{{.Detail}}'/2</script>`,
		"{{with .Hint}}{{- . -}}{{end}}{{/* */}}", `<a href='{{.Back}}'>{{template "_top.html" .}}</a>`, "<!-- {{.Title}} --><textarea>{{.Title}}</textarea>", "{{if ne .Status 4}}{{end"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := map[string]string{"busy.html": text, "_top.html": "<b>{{.Title}}</b>"}
		tame, err := written("busy.html", files, hostile("plain"))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "busy.html:") && !strings.HasPrefix(err.Error(), "_top.html:") {
				t.Errorf("no place: %v", err)
			}
			return
		}
		wild, err := written("busy.html", files, hostile(`"'><script>alert(1)</script>`+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, sign := range []string{"<", ">", `"`} {
			if strings.Count(escapedOut(tame), sign) != strings.Count(escapedOut(wild), sign) {
				t.Errorf("%q: words left their place by %s:\n%s", text, sign, wild)
			}
		}
	})
}

// escapedOut leaves out the quotes that a script takes for letters.
func escapedOut(page string) string { return strings.ReplaceAll(page, `\"`, "") }
