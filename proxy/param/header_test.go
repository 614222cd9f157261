package param

import (
	"strings"
	"testing"
	"time"
)

func TestHeader_NameThatStandsTwiceIsAmbiguous(t *testing.T) {
	for fields, want := range map[string]string{
		"X-Sku: 5\r\n":                "5",
		"x-sKU: 5\r\n":                "5",
		"X-Sku: 5\r\nX-Sku: 6\r\n":    "ambiguous duplicate_key x-sku",
		"X-Sku: 5\r\nx-sku: 5\r\n":    "ambiguous duplicate_key x-sku",
		"X-Sku: 5\r\nX_Sku: 6\r\n":    "ambiguous duplicate_key x-sku",
		"X_Sku: 6\r\nX-Sku: 5\r\n":    "ambiguous duplicate_key x-sku",
		"X-Sku:\r\nX-Sku: 6\r\n":      "ambiguous duplicate_key x-sku",
		"X_Sku: 6\r\n":                "missing",
		"X-Sku:\r\n":                  "missing",
		"X-Skus: 6\r\n":               "missing",
		"X-Sku: a \"b\", c\\d\r\n":    `a "b", c\d`,
		"X-Sku: %31\r\nY-Sku: a\r\n":  "%31",
		"X-Sku2: 6\r\nX-Sku: 1,2\r\n": "1,2",
	} {
		if got := lookup(t, "$http_x_sku", "", fields, ""); got != want {
			t.Errorf("%q: %s, want %s", fields, got, want)
		}
	}
}

func TestCookie_IsReadInOneWayOrAmbiguous(t *testing.T) {
	for cookies, want := range map[string]string{
		"a=b; sku=5":                  "5",
		"a=b;sku=5;":                  "5",
		" sku =5 ;b":                  "5",
		"sku= 5":                      "ambiguous value_invalid $cookie_sku",
		`a=b; sku="5"`:                "5",
		"sku=a=b":                     "a=b",
		"sku=%35":                     "5",
		"sku=a%20b":                   "a+b",
		"sku=a%20%20":                 "ambiguous value_invalid $cookie_sku",
		"sku=%20a":                    "ambiguous value_invalid $cookie_sku",
		"sku=a+b":                     "a+b",
		"sku=5%":                      "5%",
		"%73ku=5":                     "5", // as some readers have it
		"sku=5; %73ku=6":              "ambiguous duplicate_key sku",
		"sku=5; sku=5":                "5",
		"sku=5; sku[]=5":              "ambiguous duplicate_key sku",
		"sku[x]=5":                    "ambiguous name_spelling sku",
		"sku=5; sku.x=6; skus=7":      "5",
		"a=b,sku=5":                   "5", // likewise
		"sku=5; a=b,sku=6":            "ambiguous duplicate_key sku",
		"sku=5; a=b, sku =5,c=d":      "5",
		"sku=5; a=b sku=6":            "ambiguous duplicate_key sku", // Bottle, CherryPy, WebOb
		"a=b\tsku = 6; sku=5":         "ambiguous duplicate_key sku",
		"sku=5; \u00a0sku=6":          "ambiguous duplicate_key sku", // Tornado trims it
		`sku=5; " sku=6"; a`:          "ambiguous duplicate_key sku", // WebOb
		"sku=5; a=b sku=5":            "5",
		"sku=5; a=b sku x":            "5",
		"sku=5; a={\"sku\":6,\"x\"}":  "5",
		"SKU=5":                       "missing",
		"sku":                         "missing",
		"sku=":                        "missing",
		"skus=5; asku=5; ku":          "missing",
		"sku=5\r\nCookie: b=c; sku=5": "5",
		"sku=5; sku=5; sku=5":         "5",
		"sku=5; SKU=5":                "ambiguous duplicate_key sku",
		"SKU=5; sku=5":                "ambiguous duplicate_key sku",
		"sku=5; sku=5; sku=6":         "ambiguous duplicate_key sku",
		"sku=5; sku=6; sku=5":         "ambiguous duplicate_key sku",
		"sku=5; sku=%35":              "ambiguous duplicate_key sku",
		"sku=5; sku=6":                "ambiguous duplicate_key sku",
		"sku=5; SKU=6":                "ambiguous duplicate_key sku",
		"sku=5; \u017fku=6":           "ambiguous duplicate_key sku",
		"sku; sku=6":                  "ambiguous duplicate_key sku",
		"sku=5\r\nCookie: b=c; Sku=6": "ambiguous duplicate_key sku",
		"sku=a b":                     "ambiguous value_invalid $cookie_sku",
		"sku=a,b":                     "ambiguous value_invalid $cookie_sku",
		`sku=a"b`:                     "ambiguous value_invalid $cookie_sku",
		`sku="a;b"`:                   "ambiguous value_invalid $cookie_sku",
		`sku="a\061"`:                 "ambiguous value_invalid $cookie_sku",
		"sku=a\tb":                    "ambiguous value_invalid $cookie_sku",
	} {
		if got := lookup(t, "$cookie_sku", "", "Cookie: "+cookies+"\r\n", ""); got != want {
			t.Errorf("%q: %s, want %s", cookies, got, want)
		}
	}
}

// A run of blanks is gone through once: 15 KB of them took seconds.
func TestCookie_LookupTakesLinearTime(t *testing.T) {
	blanks := strings.Repeat(" ", 15000)
	for _, cookies := range []string{"a=b" + blanks + "y; sku=5", "a=" + blanks + "y; sku=5", "a" + blanks + "=b; sku=5"} {
		began := time.Now()
		for range 20 {
			if got := lookup(t, "$cookie_sku", "", "Cookie: "+cookies+"\r\n", ""); got != "5" {
				t.Fatalf("%.9q…: %s", cookies, got)
			}
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%.9q…: 20 lookups took %v", cookies, took)
		}
	}
}

func TestCookie_NameThatPHPFoldsCountsAsTheName(t *testing.T) {
	for cookies, want := range map[string]string{
		"user_id=5; user.id=6":    "ambiguous duplicate_key user_id",
		"user.id=6; user_id=5":    "ambiguous duplicate_key user_id",
		"user_id=5; user id=6":    "ambiguous duplicate_key user_id",
		"user_id=5; user[id=6":    "ambiguous duplicate_key user_id",
		"user_id=5; user_id[]=6":  "ambiguous duplicate_key user_id",
		"user_id=5; user%5Fid=6":  "ambiguous duplicate_key user_id",
		"user_id=5; user.id=5":    "5",
		"user.id=5":               "5",
		"user_id=5; user[id]=6":   "5",
		"user_id=5; user-id=6":    "5",
		"user_id=5; user_id.x=6":  "5",
		"user_id=5; user_id_t=6":  "5",
		"user_id=5; user%2Eidx=6": "5",
	} {
		if got := lookup(t, "$cookie_user_id", "", "Cookie: "+cookies+"\r\n", ""); got != want {
			t.Errorf("%q: %s, want %s", cookies, got, want)
		}
	}
}

func TestDecode_IsTextOrNothing(t *testing.T) {
	s := newSource(t, "", "")
	for raw, want := range map[string]string{"s%3A7.mac": "s:7.mac", "a+b": "a+b", "%ff": "", "7": "7"} {
		value, ok := s.Decode([]byte(raw))
		if ok != (want != "") || ok && string(value) != want {
			t.Errorf("%q: %q, %v", raw, value, ok)
		}
	}
}
