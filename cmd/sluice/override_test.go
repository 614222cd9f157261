package main

import "testing"

func TestOverride_KeyAndValueAreTwoWordsOrOne(t *testing.T) {
	for _, c := range []struct {
		args       []string
		key, value string
	}{
		{[]string{"mode", "observe"}, "mode", "observe"},
		{[]string{"limits.window.max_per_sku=5"}, "limits.window.max_per_sku", "5"},
		{[]string{"limits.rate[a=b].rate=20/s"}, "limits.rate[a=b].rate", "20/s"},
		{[]string{"mode"}, "mode", ""},
	} {
		if key, value := keyAndValue(c.args); key != c.key || value != c.value {
			t.Errorf("%q is %q and %q, want %q and %q", c.args, key, value, c.key, c.value)
		}
	}
}
