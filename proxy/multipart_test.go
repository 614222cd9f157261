package proxy

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"
	"unicode/utf8"
)

const partType = "Content-Type: multipart/form-data; boundary=b0\r\n"

// parts writes a body of parts, each a head and its content.
func parts(p ...string) string {
	return "--b0\r\n" + strings.Join(p, "\r\n--b0\r\n") + "\r\n--b0--\r\n"
}

func named(disposition, content string) string {
	return "Content-Disposition: form-data; " + disposition + "\r\n\r\n" + content
}

func TestPartsOfAFormAreFoundOrTheFormIsNotJudged(t *testing.T) {
	sku, file := named(`name="sku"`, "1"), named(`name="f"; filename="a;b\c.png"`, "\x89PNG\r\n\xff--b\r\n\r\n")
	for _, tt := range []struct{ variable, headers, body, want string }{
		{"$form_sku", partType, parts(sku), "1"},
		{"$form_sku", partType, strings.TrimSuffix(parts(sku), "\r\n"), "1"},
		{"$form_sku", partType, parts(file, sku, named("name=note", "--b\r\nsku=2")), "1"},
		{"$form_sku", partType, parts("content-disposition: Form-Data;name=sku\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\n1"), "1"},
		{"$form_sku", partType, parts("Content-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n" + sku), "1"},
		{"$form_sku", "Content-Type: Multipart/Form-Data; charset=utf-8; boundary=\"b0\"\r\n", parts(sku), "1"},
		{"$form_sku", partType, parts(named(`name="a"`, "1")), "bad_request"},
		{"$form_sku", partType, "", "bad_request"},
		{"$form_sku", partType, parts(named(`name="sku"`, "\xff")), "bad_request"},
		{"$arg_sku", partType, parts(named(`name="other"`, "2")), "1"},

		{"$arg_sku", partType, parts(named(`name="sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="SKU"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="sku[]"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="%73ku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="sku"; filename="x"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a"; name="sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a"; name*=utf-8''sku`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a"; filename*=utf-8''x`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a"; x="sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a\"; name="sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a"; filename="x\"; name="sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="s\ku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name='sku'`, "2")), "ambiguous"}, // PHP takes such quotes too
		{"$form_sku", partType, parts(sku, named(`name = "sku"`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a" ; filename=x y`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named(`name="a`, "2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, "\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts(sku, "Content-Type: text/plain\r\n\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts(sku, `Content-Disposition: attachment; name="sku"`+"\r\n\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts(sku, "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=sku\r\n\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts(sku, "Content-Disposition: form-data;\r\n name=sku\r\n\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts(sku, "Content-Disposition : form-data; name=sku\r\n\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts(sku, "Content-Disposition: form-data; name=a\nContent-Disposition: form-data; name=sku\r\n\r\n2"), "ambiguous"},
		{"$form_sku", partType, parts("Content-Transfer-Encoding: base64\r\n" + sku), "ambiguous"},
		{"$form_sku", partType, parts("Content-Type: text/plain; charset=utf-16\r\n" + sku), "ambiguous"},
		{"$form_sku", partType, parts(sku, named("name=_charset_", "utf-7")), "ambiguous"},
		{"$form_sku", partType, "preamble\r\n" + parts(sku), "ambiguous"},
		{"$form_sku", partType, parts(sku) + "epilogue", "ambiguous"},
		{"$form_sku", partType, parts(sku) + parts(named("name=sku", "2")), "ambiguous"},
		{"$form_sku", partType, "--b0\r\n" + sku + "\r\n", "ambiguous"},
		{"$form_sku", partType, strings.ReplaceAll(parts(sku), "\r\n", "\n"), "ambiguous"},
		{"$form_sku", partType, parts(sku, named("name=a", "x\n--b0\nContent-Disposition: form-data; name=sku\n\n2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named("name=a", "x\r\n--b0 \r\nContent-Disposition: form-data; name=sku\r\n\r\n2")), "ambiguous"},
		{"$form_sku", partType, parts(sku, named("name=a", "x\r\n--b0x\r\ny")), "ambiguous"},
		{"$form_sku", partType + "Content-Encoding: gzip\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/mixed; boundary=b0\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data; boundary=b0; boundary=b1\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data; boundary=b0; boundary*=utf-8''b1\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data; xboundary=b1; boundary=b0\r\n", parts(sku), "ambiguous"}, // PHP takes the first "boundary"
		{"$form_sku", "Content-Type: multipart/form-data; boundary=b0,b1\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data; boundary=\"b0 \"\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data; boundary=\r\n", parts(sku), "ambiguous"},
		{"$form_sku", "Content-Type: multipart/form-data; boundary=" + strings.Repeat("b", 71) + "\r\n", parts(sku), "ambiguous"},
	} {
		target := "/x"
		if strings.HasPrefix(tt.variable, "$arg") {
			target = "/x?sku=1"
		}
		if got := found(t, tt.variable, target, tt.headers, tt.body); got != tt.want {
			t.Errorf("%s of %q %q = %q, want %q", tt.variable, tt.headers, tt.body, got, tt.want)
		}
	}
}

// FuzzParts: where the gate finds a part, the standard library finds the same one, and no other of that name.
func FuzzParts(f *testing.F) {
	f.Add([]byte(parts(named(`name="sku"`, "1"))))
	f.Add([]byte(parts(named(`name="a"; filename="b"`, "\xff"), named("name=sku", "1\r\n"))))
	f.Add([]byte("--b0\r\n" + named("name=sku", "1") + "\r\n--b0--"))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &request{body: body}
		got, reason := r.part(mediaType{content: partsContent, boundary: []byte("b0")}, "sku")
		if reason != Admitted || len(body) == 0 {
			return
		}
		var want []byte
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
				if want != nil || p.FileName() != "" {
					t.Fatalf("%q: accepted, but two parts are named so, or it is a file", body)
				}
				want = append([]byte{}, content...)
			}
		}
		if string(got) != string(want) || (got == nil) != (want == nil) || !utf8.Valid(got) {
			t.Fatalf("%q: %q, the library found %q", body, got, want)
		}
	})
}
