package config

import "testing"

// testVariables of the tests.
func testVariables(name string) (string, bool) {
	value, ok := map[string]string{"PORT": "8081", "EMPTY": "", "MONEY": "$100 ${PORT}"}[name]
	return value, ok
}

func TestVariable_EnvironmentIsExpandedAndRequestVariablesAreNot(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"plain":                 "plain",
		":${PORT}":              ":8081",
		"${PORT}${PORT}":        "80818081",
		"${PORT:-1}":            "8081",
		"${NONE:-1}":            "1",
		"${NONE:-}":             "",
		"${NONE:-a:-b$c}":       "a:-b$c",
		"${EMPTY}":              "",
		"${EMPTY:-x}":           "x",
		"${MONEY}":              "$100 ${PORT}",
		"$remote_addr:$path_id": "$remote_addr:$path_id",
		"{$sku}":                "{$sku}",
		"$$":                    "$$",
		"$${PORT}":              "$${PORT}",
		"$$${PORT}":             "$$8081",
		"$":                     "$",
		"a$":                    "a$",
		"价 ${PORT}":             "价 8081",
	} {
		got, err := expandVariables(text, testVariables)
		if err != nil || got != want {
			t.Errorf("Expand(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"${NONE}", "${", "${}", "${PORT", "${:-x}", "${A-B}", "${1A}", "${PORT:+x}"} {
		if got, err := expandVariables(text, testVariables); err == nil {
			t.Errorf("Expand(%q) = %q, want an error", text, got)
		}
	}
}
