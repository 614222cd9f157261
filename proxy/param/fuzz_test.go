package param

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice/proxy/reject"
)

// Whatever stands in a configuration, it is compiled or an error, and its parts spell it.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"$path_sku", "$json_items.0.sku_id", "$host-$arg_x", "a$$b", "$", "$path_", "$json_a..b", "$cookie_a-b",
		"$remote_addr/$http_x_user", `$form("order[sku_id]")`, `$json("a.b".c.0.'d')x`, "$form_a[b]", `$header("`, "$cookie(a)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := Compile(text, []string{"sku"})
		if err != nil {
			return
		}
		if strings.Contains(text, "$(") { // $(arg_x) is $arg_x
			return
		}
		spelled := ""
		for i := range v.Parts() {
			p := &v.Parts()[i]
			if p.Kind() == Literal {
				spelled += strings.ReplaceAll(p.Text(), "$", "$$")
			} else {
				spelled += p.Text()
			}
		}
		if spelled != text {
			t.Errorf("%q became %q", text, spelled)
		}
		s := newSource(t, "", "")
		s.Captures = [][]byte{[]byte("1")}
		v.Value(s)
	})
}

// A value found in a query or form is the only one that net/url finds.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		" sku=1", "sku%00x=1&sku=1", "sku[]=1&sku=2", "sku=1", "sku=1&sku=2", "a;sku=2&sku=1", "s%6bu=1",
		"sku[]=1", "sku=%zz", "sku=a+b%2B", "&&sku=", "SKU=1&sku=2",
	} {
		f.Add(s)
	}
	inQuery, inForm := compile(f, "$arg_sku"), compile(f, "$form_sku")
	f.Fuzz(func(t *testing.T, list string) {
		s := newSource(t, formType, list)
		s.Query = []byte(list)
		got, fault := inQuery.Value(s)
		if _, err := url.QueryUnescape(list); err != nil {
			if _, fault := inForm.Value(s); list != "" && fault.Reason != reject.Ambiguous {
				t.Errorf("%q: a form with a broken escape: %v", list, fault)
			}
			return
		}
		if utf8.ValidString(list) && !s.beginsOtherwise() {
			if same := result(inForm.Value(s)); same != strings.Replace(result(got, fault), "$arg", "$form", 1) {
				t.Errorf("%q: %q in a form, %q in a query", list, same, result(got, fault))
			}
		}
		values, _ := url.ParseQuery(list)
		all := values["sku"]
		for name, more := range values {
			if !strings.EqualFold(name, "sku") && (phpName(name) == "sku" || isGoFrameName(name)) {
				all = append(all, more...)
			}
		}
		slices.Sort(all)
		if len(got) > 0 && len(all) > 1 && len(values["sku"]) < 2 {
			all = slices.Compact(all) // spellings of one name may have the same value
		}
		switch {
		case fault.Reason != reject.Admitted:
		case len(got) > 0 && (len(all) != 1 || all[0] != string(got)):
			t.Errorf("%q: %q, net/url finds %q", list, got, all)
		case len(got) == 0 && strings.Join(all, "") != "":
			t.Errorf("%q: missing, net/url finds %q", list, all)
		}
	})
}

// phpName is what PHP makes of a name without brackets and "_".
func phpName(name string) string {
	name, _, _ = strings.Cut(strings.TrimLeft(name, " \t\r\n\v\f["), "\x00")
	return name
}

// isGoFrameName reports a name with the letters of sku, and no list.
func isGoFrameName(name string) bool {
	return !strings.Contains(name, "]") && sameLetters([]byte(name), "sku")
}

// A cookie that is found is the only one that net/http finds, if it takes the value for one.
func FuzzCookie(f *testing.F) {
	for _, s := range []string{
		"sku=1", "a=b; sku=\"1\"", "sku=1; SKU=2", "sku", "sku=1;sku=2", " sku\t=\t1 ;", "sku=a b", "sku=\"a;b\"", "sku= 0",
		"sku=1; sku=1", "a=1,sku=2; sku=1", "s%6bu=1", "sku[]=1",
	} {
		f.Add(s)
	}
	strict := compile(f, "$cookie_sku")
	f.Fuzz(func(t *testing.T, list string) {
		if strings.ContainsAny(list, "\r\n") {
			return
		}
		head, err := parseHead("Cookie: " + list + "\r\n")
		if err != nil {
			return
		}
		s := &Source{Head: head}
		strict.Value(s)
		got, fault := s.Cookie("sku")
		if fault.Reason != reject.Admitted {
			return
		}
		for _, c := range (&http.Request{Header: http.Header{"Cookie": {list}}}).CookiesNamed("sku") {
			if c.Value != string(got) {
				t.Errorf("%q: %q, net/http finds %q", list, got, c)
			}
		}
	})
}

// A value found in JSON is the one that encoding/json finds, which takes the last of two names and folds letter case.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"sku":"1"}`, `{"sku":1,"sku":2}`, `{"SKU":1}`, `{"\u0073ku":"1"}`, `{"sku":1e3}`, `{"a":{"sku":1},"sku":[1]}`,
		`[1]`, `{"sku":"\ud800"}`, `{"ſku":2,"sku":1}`, `{"items":[{"sku":1},{"SKU":2}]}`,
		`{"sku":"\ud83d\ude00\n\"","items":[{"sku":7}]}`,
	} {
		f.Add([]byte(s))
	}
	top, nested := compile(f, "$json_sku"), compile(f, "$json_items.0.sku")
	f.Fuzz(func(t *testing.T, body []byte) {
		JSONText(body, []string{"items", "0", "sku"})
		s := newSource(t, jsonType, string(body))
		var server struct {
			SKU   any
			Items []struct{ SKU any }
		}
		check := func(v *Variable, found func() any) {
			got, fault := v.Value(s)
			if fault.Reason != reject.Admitted || len(got) == 0 {
				return
			}
			d := json.NewDecoder(bytes.NewReader(body))
			d.UseNumber()
			if err := d.Decode(&server); err != nil {
				if _, otherType := err.(*json.UnmarshalTypeError); !otherType {
					t.Fatalf("%q: %s is %q, but %v", body, v, got, err)
				}
				return
			}
			if want := fmt.Sprint(found()); want != string(got) {
				t.Errorf("%q: %s is %q, encoding/json finds %q", body, v, got, want)
			}
		}
		check(top, func() any { return server.SKU })
		check(nested, func() any {
			for _, item := range server.Items[1:] {
				if item.SKU != nil {
					return "two items"
				}
			}
			return server.Items[0].SKU
		})
	})
}

// A part that is found is the only one of its name that mime/multipart finds, and no file.
func FuzzMultipart(f *testing.F) {
	f.Add([]byte(form(named(`name="sku"`, "1"))))
	f.Add([]byte(form(named(`name="a"; filename="b"`, "\xff"), named("name=sku", "1\r\n"))))
	f.Add([]byte("--b0\r\n" + named("name=sku", "1") + "\r\n--b0--"))
	f.Add([]byte(form(named("name=sku", "1"), named("name=%53ku", "1"))))
	v := compile(f, "$form_sku")
	f.Fuzz(func(t *testing.T, body []byte) {
		got, fault := v.Value(newSource(t, partType, string(body)))
		if fault.Reason != reject.Admitted || len(body) == 0 {
			return
		}
		var want []byte
		exact := false
		reader := multipart.NewReader(bytes.NewReader(body), "b0")
		for {
			p, err := reader.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%q: accepted, but %v", body, err)
			}
			content, err := io.ReadAll(p)
			if err != nil {
				t.Fatalf("%q: accepted, but %v", body, err)
			}
			if strings.EqualFold(p.FormName(), "sku") {
				if want != nil || p.FormName() == "sku" && p.FileName() != "" {
					t.Fatalf("%q: accepted, but two parts are named so, or it is a file", body)
				}
				want, exact = append([]byte{}, content...), p.FormName() == "sku"
			}
		}
		if !exact {
			want = nil
		}
		if string(got) != string(want) || !utf8.Valid(got) {
			t.Fatalf("%q: %q, the library finds %q", body, got, want)
		}
	})
}
