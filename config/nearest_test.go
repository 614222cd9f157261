package config

import "testing"

func TestNearest_SuggestionIsALikelySlipOfThePenOrNothing(t *testing.T) {
	known := []string{"size", "max", "max_per_sku", "carry", "scope", "read_timeout"}
	for name, want := range map[string]string{
		"maximum": "max", "mx": "max", "amx": "max", "Max": "max", "max-per-sku": "max_per_sku", "maxPerSku": "max_per_sku",
		"read": "read_timeout", "carrry": "carry", "": "", "x": "", "burst": "", "sc": "", "timeout": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestNearest_EditsAreCountedWithSwapsAsOne(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"gate", "gaet", 1}, {"kitten", "sitting", 3}, {"abcd", "badc", 2},
		{"max", "maximum", 4},
	} {
		if got := editDistance(test.a, test.b); got != test.want {
			t.Errorf("edits(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
