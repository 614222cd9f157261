package param

import (
	"strings"
	"testing"
)

func TestValidators_BoundWhatARequestMayName(t *testing.T) {
	for _, c := range []struct {
		name           string
		sku, user, key bool
	}{
		{"", false, false, false},
		{"A-1.b:c/d", true, true, true},
		{"商品", true, true, false},
		{"a b", false, true, false},
		{"a{b", false, true, true},
		{"a}b", false, true, true},
		{"a\tb", false, false, false},
		{"a\x7fb", false, false, false},
		{"a\xff", false, false, false},
		{" a", false, false, false},
		{"a ", false, false, false},
		{"a\u00a0", false, false, false},
		{"\u3000a", false, false, false},
		{"a\u200b", false, false, false},
		{"\ufeffa", false, false, false},
		{"a\u3000b", true, true, false},
		{".", true, true, false},
		{"..", true, true, false},
		{"...", true, true, true},
		{`\x41`, true, true, false},
		{`x\x41`, true, true, true},
		{strings.Repeat("x", 128), true, true, true},
		{strings.Repeat("x", 129), false, true, false},
		{strings.Repeat("x", 256), false, true, false},
		{strings.Repeat("x", 257), false, false, false},
	} {
		b := []byte(c.name)
		if ValidSKU(b) != c.sku || ValidUser(b) != c.user || ValidIdempotencyKey(b) != c.key {
			t.Errorf("%q: SKU %v, user %v, key %v", b, ValidSKU(b), ValidUser(b), ValidIdempotencyKey(b))
		}
	}
}

func TestParseQuantity_TakesPlainNumbersWithinTheLimit(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int64
		want  int64 // 0 = invalid
	}{
		{"1", 0, 1}, {"2", 2, 2}, {"3", 2, 0}, {"1000000000", 0, 1_000_000_000}, {"1000000001", 0, 0}, {"9999999999", 0, 0},
		{"10000000000", 0, 0}, {"0", 0, 0}, {"01", 0, 0}, {"-1", 0, 0}, {"+1", 0, 0}, {"1.0", 0, 0}, {"1 ", 0, 0}, {"", 0, 0},
		{"x", 0, 0},
	} {
		if got, ok := ParseQuantity([]byte(c.text), c.limit); ok != (c.want > 0) || ok && got != c.want {
			t.Errorf("%q of at most %d: %d, %v", c.text, c.limit, got, ok)
		}
	}
}

// Of an incomplete escape servers make different things: an error, the text as it stands, or another letter.
func TestVariable_IncompleteEscapeIsAmbiguous(t *testing.T) {
	for _, raw := range []string{"10%zz01", "100%", "%u0031", "%4"} {
		s := newSource(t, "", "")
		s.Query, s.Captures = []byte("sku="+raw), [][]byte{[]byte(raw)}
		for _, v := range []*Variable{compile(t, "$arg_sku"), compile(t, "$path_sku", "sku")} {
			if got := result(v.Value(s)); got != "ambiguous value_invalid "+v.String() {
				t.Errorf("%s = %q: %s", v.String(), raw, got)
			}
		}
	}
}
