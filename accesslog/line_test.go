package accesslog

import "testing"

func TestLine_EscapesWhatChangesHowItIsShown(t *testing.T) {
	for value, want := range map[string]string{
		"1001\u202e\u2066\u200f\u061c": `"1001\u202e\u2066\u200f\u061c"`,
		"a\x1b\u009bb":                 `"a\u001b\u009bb"`,
		"王小明 שלום":                     `"王小明 שלום"`,
		"a\xffb":                       "\"a\ufffdb\"",
	} {
		if got := string(appendQuoted(nil, value)); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
