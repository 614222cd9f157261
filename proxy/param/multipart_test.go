package param

import (
	"strings"
	"testing"
)

// form writes a body of parts, each a head and its content.
func form(parts ...string) string {
	return "--b0\r\n" + strings.Join(parts, "\r\n--b0\r\n") + "\r\n--b0--\r\n"
}

func named(disposition, content string) string {
	return "Content-Disposition: form-data; " + disposition + "\r\n\r\n" + content
}

func TestMultipart_IsReadInOneWayOrAmbiguous(t *testing.T) {
	const (
		twice   = "ambiguous duplicate_key sku"
		broken  = "ambiguous body_not_form"
		invalid = "ambiguous content_type_invalid"
		media   = "Content-Type: multipart/form-data; "
		other   = "Content-Disposition: form-data; name=a"
	)
	sku, file := named(`name="sku"`, "1"), named(`name="f"; filename="a;b\c.png"`, "\x89PNG\r\n\xff--b\r\n\r\n")
	for _, c := range []struct{ fields, body, want string }{
		{partType, form(sku), "1"},
		{partType, strings.TrimSuffix(form(sku), "\r\n"), "1"},
		{partType, form(file, sku, named("name=note", "--b\r\nsku=2")), "1"},
		{partType, form("content-disposition: Form-Data;name=sku\r\nContent-Type: text/plain; charset=UTF-8\r\n\r\n1"), "1"},
		{partType, form("Content-Type: text/plain\r\nContent-Transfer-Encoding: 8bit\r\n" + sku), "1"},
		{partType, form("Content-Transfer-Encoding: 7bit\r\n" + sku), "1"},
		{partType, form("content-transfer-encoding: Binary\r\n" + sku), "1"},
		{"Content-Type: multipart/form-data; Charset=utf-8; Boundary=\"b0\"\r\n", form(sku), "1"},
		{partType, form("Content-Type: text/plain; charset=ISO-8859-1\r\nContent-Transfer-Encoding: 8bit\r\n" + sku), "1"},
		{partType, form("Content-Type: text/plain; charset=GBK\r\n" + sku), "1"},
		{media + "boundary=b0; charset=ISO-8859-1\r\n", form(sku, named("name=note", "\xe9")), "1"}, // Apache's HttpClient
		{media + "boundary=b0; charset=ISO-8859-1\r\n", form(named("name=sku", "\xc3\xa9")), "ambiguous body_not_utf8"},
		{media + "boundary=b0; charset=utf-16\r\n", form(sku), "ambiguous body_not_utf8"},
		{partType, form("Content-Type: text/plain; charset=utf-16\r\n"+named("name=note", "\x00a"), sku), "1"},
		{partType, form("Content-Transfer-Encoding: base64\r\n"+named("name=note", "YQ=="), sku), "1"},
		{partType, "\r\n" + form(sku), "1"},
		{partType, "This is a form.\r\n\r\n" + form(sku), "1"},
		{partType, form(sku) + "\r\n", "1"},
		{partType, form(sku, named(`name="sku[]"`, "2")), "ambiguous duplicate_key sku"},
		{partType, form(sku, named(`name=" sku"`, "2")), "ambiguous duplicate_key sku"},
		{partType, form(sku, named(`name="=?utf-8?B?c2t1?="`, "2")), broken}, // commons-fileupload decodes it
		{partType, form(sku, named("name=\"sku \"", "2")), twice},            // Django, Tomcat
		{partType, form(sku, named("name=\"sku\t\"", "2")), twice},
		{partType, form(sku, named("name=\"\ufeffsku\"", "2")), twice}, // Hono on Node
		{partType, form(sku, named(`name="sku;x"`, "2")), broken},      // Catalyst ends the name there
		{partType, form(sku, named(`name="note "; filename="a; b.png"`, "2")), "1"},
		{partType, form(sku, named(`name="a;name=sku"`, "2")), broken}, // Rack, as the next five
		{partType, form(sku, named(`name="a"; filename="x; Name=sku"`, "2")), broken},
		{partType, form(sku, named(`name=a; filename="sku"`, "2")), broken}, // Workerman
		{partType, form(sku, named(`filename=sku; name=a`, "2")), broken},   // Drogon, as the next, searches for name=
		{partType, form(sku, named(`NAME=a; FILENAME="name=sku;"`, "2")), broken},
		{partType, form(sku, named(`name=a; filename="s ku"`, "2")), "1"},
		{partType, form(sku, named(`name=a; filename="my sku"`, "2")), "1"},
		{partType, form(sku, named(`name=a; filename="sku.png"`, "2")), "1"},
		{partType, form(sku, "X-"+named("name=sku", "2")), broken},
		{partType, form(sku, "X-Content-Disposition: form-data; name=sku\r\n"+named("name=a", "2")), broken},
		{partType, form(sku, "X: content-disposition: form-data; name=sku\r\n"+named("name=a", "2")), broken},
		{partType, form(sku, named(`name=a; filename="Content-Disposition: form-data; name=sku"`, "2")), broken},
		{partType, form(named("name=_charset_", "UTF-8"), sku), "1"}, // browsers fill it in; aiohttp and Jetty heed it
		{partType, form(named("name=_charset_", "GBK"), sku), "1"},
		{partType, form(named("name=_charset_", "GBK"), named("name=sku", "\u00e9")), "ambiguous body_not_utf8"},
		{partType, form(named("name=_charset_", "utf-7"), named("name=sku", "+ADI-")), broken}, // 2
		{partType, form(named("name=_charset_", "unicode_escape"), named("name=sku", `\x32`)), broken},
		{partType, form(named(`name="a"`, "1")), "missing"},
		{partType, form(named(`name="SKU"`, "1")), "missing"},
		{partType, form(named(`name="%73ku"`, "1")), "missing"},
		{partType, form(named(`name="sku"`, "")), "missing"},
		{partType, "", "missing"},
		{partType, form(named(`name="sku"`, "\xff")), "bad value_invalid $form_sku"},
		{"Content-Type: multipart/mixed; boundary=b0\r\n", form(sku), "bad body_not_form $form_sku"},

		{partType, form(sku, named(`name="sku"`, "2")), twice},
		{partType, form(sku, named(`name="SKU"`, "2")), twice},
		{partType, form(sku, named("name=\"\u017fku\"", "2")), twice},
		{partType, form(sku, named(`name="%73ku"`, "2")), twice},
		{partType, form(sku, named(`name="sku"; filename="x"`, "2")), twice},
		{partType, form(named(`name="sku"; filename="x"`, "2")), "ambiguous value_invalid $form_sku"},
		{partType, form(sku, named(`name="a"; name="sku"`, "2")), broken},
		{partType, form(sku, named(`name="a"; name*=utf-8''sku`, "2")), broken},
		{partType, form(sku, named(`name="a"; filename*=utf-8''x`, "2")), broken},
		{partType, form(sku, named(`name=a; filename=x.png; filename*=utf-8''x%20.png`, "2")), "1"},
		{partType, form(sku, named(`name=a; filename*=utf-8''x; filename=x`, "2")), broken},
		{partType, form(sku, named(`name=a; filename=x; filename*=utf-8''x; name=sku`, "2")), broken},
		{partType, form(sku, named(`filename=x; filename*=utf-8''x; name=sku`, "2")), broken},
		{partType, form(sku, named(`name=sku; filename=x; filename*=utf-8''x`, "2")), twice},
		{partType, form(sku, named(`name="a"; x="sku"`, "2")), broken},
		{partType, form(sku, named(`name="a\"; name="sku"`, "2")), broken},
		{partType, form(sku, named(`name="a"; filename="x\"; name="sku"`, "2")), broken},
		{partType, form(sku, named(`name="s\ku"`, "2")), broken},
		{partType, form(sku, named(`name='sku'`, "2")), broken},
		{partType, form(sku, named(`name = "sku"`, "2")), broken},
		{partType, form(sku, named(`name="a" ; filename=x y`, "2")), broken},
		{partType, form(sku, named(`name="a`, "2")), broken},
		{partType, form(sku, named("name=\"\xff\"", "2")), broken},
		{partType, form(sku, "\r\n2"), broken},
		{partType, form(sku, "Content-Type: text/plain\r\n\r\n2"), broken},
		{partType, form(sku, `Content-Disposition: attachment; name="sku"`+"\r\n\r\n2"), broken},
		{partType, form(sku, other+"\r\nContent-Disposition: form-data; name=sku\r\n\r\n2"), broken},
		{partType, form(sku, "Content-Disposition: form-data;\r\n name=sku\r\n\r\n2"), broken},
		{partType, form(sku, "Content-Disposition : form-data; name=sku\r\n\r\n2"), broken},
		{partType, form(sku, "Content-Disposition\r\n\r\n2"), broken},
		{partType, form(sku, other+"\nContent-Disposition: form-data; name=sku\r\n\r\n2"), broken},
		{partType, form("Content-Transfer-Encoding: base64\r\n" + sku), broken},
		{partType, form("Content-Transfer-Encoding: quoted-printable\r\n" + sku), broken},
		{partType, form("Content-Type: text/plain; charset=utf-16\r\n" + sku), broken},
		{partType, form("Content-Type: text/plain; charset=utf-7\r\n" + sku), broken},
		{partType, form("Content-Type: text/plain; charset=ISO-8859-1; charset=utf-8\r\n" + sku), broken},
		{partType, form("Content-Type: text/plain; charset=ISO-8859-1\r\n" + named("name=sku", "\xe9")),
			"ambiguous body_not_utf8"},
		{partType, form("Content-Type: text/plain; charset=ISO-8859-1\r\n" + named("name=sku", "\u00e9")),
			"ambiguous body_not_utf8"},
		{partType, "preamble" + form(sku), broken},
		{partType, "preamble\n" + form(sku), broken},
		{partType, named("name=sku", "2") + "\r\n" + form(sku), broken},
		{partType, "a\r\ncontent-disposition: form-data; name=sku\r\n\r\n2\r\n" + form(sku), broken},
		{partType, "--b0--\r\n" + form(sku), broken},
		{partType, form(sku) + "epilogue", broken},
		{partType, form(sku) + form(named("name=sku", "2")), broken},
		{partType, "--b0\r\n" + sku + "\r\n", broken},
		{partType, strings.ReplaceAll(form(sku), "\r\n", "\n"), broken},
		{partType, form(sku, named("name=a", "x\n--b0\nContent-Disposition: form-data; name=sku\n\n2")), broken},
		{partType, form(sku, named("name=a", "x\r\n--b0 \r\nContent-Disposition: form-data; name=sku\r\n\r\n2")), broken},
		{partType, form(sku, named("name=a", "x\r\n--b0x\r\ny")), broken},
		{partType, form(named("name=a", "b0\r\n"+named("name=sku", "2....b0\r\n\r\n")), sku), broken}, // Sanic
		{partType, "b0\r\n\r\n" + form(sku), broken},
		{partType + "Content-Encoding: gzip\r\n", form(sku), "ambiguous body_compressed"},
		{"Content-Type: multipart/form-data\r\n", form(sku), invalid},
		{"Content-Type: Multipart/form-data; boundary=b0\r\n", "sku=2\r\n" + form(sku), invalid}, // a form of pairs to Netty
		{media + "boundary=b0; boundary=b1\r\n", form(sku), invalid},
		{media + "boundary=b0; boundary*=utf-8''b1\r\n", form(sku), invalid},
		{media + "xboundary=b1; boundary=b0\r\n", form(sku), invalid},
		{media + "boundary=b0,b1\r\n", form(sku), invalid},
		{media + "boundary=\"b0 \"\r\n", form(sku), invalid},
		{media + "boundary=b%30\r\n", strings.ReplaceAll(form(sku), "b0", "b%30"), invalid}, // cpp-httplib decodes it
		{media + "boundary=*****\r\n", strings.ReplaceAll(form(sku), "b0", "*****"), "1"},
		{media + "boundary=\r\n", form(sku), invalid},
		{media + "boundary=\"\"\r\n", form(sku), invalid},
		{media + "boundary=" + strings.Repeat("b", 71) + "\r\n", form(sku), invalid},
	} {
		if got := lookup(t, "$form_sku", "", c.fields, c.body); got != c.want {
			t.Errorf("%q %q: %s, want %s", c.fields, c.body, got, c.want)
		}
	}
}
