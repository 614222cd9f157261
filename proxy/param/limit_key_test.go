package param

import (
	"net/netip"
	"testing"

	"sluice/proxy/reject"
)

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
		{"$cookie_x", []string{"++"}}, {"$remote_addr", []string{"ten"}},
	} {
		if key, err := compileKey(t, c.key).FromValues(c.values); err == nil {
			t.Errorf("%s of %q is %q, want an error", c.key, c.values, key)
		}
	}
}

func TestKey_OfACookieLacksWhatShopsTrim(t *testing.T) {
	k := compileKey(t, "$cookie_uid")
	want, err := k.FromValues([]string{"s"})
	if typed, _ := k.FromValues([]string{"s+"}); err != nil || string(typed) != string(want) {
		t.Errorf("s+ is %q, want %q, as of s; %v", typed, want, err)
	}
	room := make([]byte, 0, 64)
	for _, cookie := range []string{
		"s", " s", "\ts", "  s%20", "%20s", "s+", "%09s%0A", `"s"`, ` "s"`, `" s "`, "\"\t%20s\"", "%00s",
	} {
		from := newSource(t, "Cookie: uid="+cookie+"; a=b\r\n", "")
		key, ok, fault := k.Append(room, from, netip.Addr{})
		if !ok || fault.Reason != reject.Admitted || string(key) != string(want) {
			t.Errorf("%q: %q %v, want %q", cookie, key, fault, want)
		}
		head := from.Head
		if n := testing.AllocsPerRun(100, func() {
			from.Reset()
			from.Head = head
			k.Append(room, from, netip.Addr{})
		}); n != 0 && !raceEnabled {
			t.Errorf("%q: %v allocations", cookie, n)
		}
	}
}
