package param

import "testing"

func TestKey_FromValuesIsTheKeyOfSuchARequest(t *testing.T) {
	for _, c := range []struct{ key, value string }{
		{"$http_x_level", "vip-7"}, {"user-$http_x_level", "7"}, {"$remote_addr", "10.1.2.3"},
		{"$remote_addr", "2001:db8::1"},
	} {
		k := compileKey(t, c.key)
		if got, err := k.FromValues([]string{c.value}); err != nil || string(got) != string(keyOf(t, k, c.value)) {
			t.Errorf("%s of %s: %q, %v; want %q", c.key, c.value, got, err, keyOf(t, k, c.value))
		}
	}
	for _, c := range []struct {
		key    string
		values []string
	}{
		{"$http_x_level", nil}, {"$http_x_level", []string{""}}, {"$http_x_level", []string{"a", "b"}},
		{"$remote_addr", []string{"ten"}},
	} {
		if key, err := compileKey(t, c.key).FromValues(c.values); err == nil {
			t.Errorf("%s of %q is %q, want an error", c.key, c.values, key)
		}
	}
}
