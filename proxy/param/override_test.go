package param

import (
	"net/netip"
	"strings"
	"testing"

	"sluice/proxy/reject"
	"sluice/proxy/server"
)

func compileKey(t testing.TB, text string) *LimitKey {
	t.Helper()
	k, err := CompileLimitKey(text, nil, 32, 64)
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

// keyOf is the key of a request with this X-Level, or of this client.
func keyOf(t testing.TB, k *LimitKey, value string) []byte {
	t.Helper()
	x, err := server.Read("GET / HTTP/1.1\r\nHost: s\r\nX-Level: "+value+"\r\n\r\n", netip.Addr{},
		server.Limits{Header: 16 << 10, Target: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	client, _ := netip.ParseAddr(value)
	key, ok, fault := k.Append(nil, &Source{Head: x.Request()}, client)
	if !ok || fault.Reason != reject.Admitted {
		t.Fatalf("%q has no key: %v", value, fault)
	}
	return key
}

func TestOverrides_MostSpecificPatternHolds(t *testing.T) {
	for _, c := range []struct {
		key, value string
		patterns   []string
		want       int
	}{
		{"$http_x_level", "vip-7", []string{"vip-*"}, 0},
		{"$http_x_level", "vip-", []string{"vip-*"}, 0},
		{"$http_x_level", "vip", []string{"vip-*"}, -1},
		{"$http_x_level", "a-vip-7", []string{"vip-*"}, -1},
		{"$http_x_level", "user-$http_x_level", []string{"user-*"}, 0},
		{"user-$http_x_level", "gold", []string{"gold"}, 0}, // a pattern is of the variable's value
		{"$http_x_level", "vip-7", []string{"*", "vip-*", "vip-7", "vip-7*"}[1:], 1},
		{"$http_x_level", "vip-7", []string{"v*", "vip-*"}, 1},
		{"$http_x_level", "abcabc", []string{"a*bc*c"}, 0},
		{"$http_x_level", "aba", []string{"ab*ba"}, -1}, // one b is not two
		{"$http_x_level", "abba", []string{"ab*ba"}, 0},
		{"$http_x_level", "a-x-y-z", []string{"*-x*-z"}, 0},
		{"$http_x_level", "a-z-x", []string{"*-x*-z"}, -1},
		{"$http_x_level", strings.Repeat("a", 256), []string{"a*"}, 0},
		{"$http_x_level", strings.Repeat("a", 257), []string{"a*"}, ValueTooLong},
		{"$http_x_level", strings.Repeat("a", 257), nil, NoPattern},
		{"$http_x_level", "a.c", []string{"a?c", "a.*"}, 1},
		{"$remote_addr", "10.1.2.3", []string{"10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0"}, 1},
		{"$remote_addr", "10.2.2.3", []string{"10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0"}, 0},
		{"$remote_addr", "11.2.2.3", []string{"10.0.0.0/8", "10.1.2.3"}, -1},
		{"$remote_addr", "10.1.2.3", []string{"10.0.0.0/8", "10.1.2.3"}, 1},
		{"$remote_addr", "2001:db8:1:2:3::4", []string{"0.0.0.0/0", "2001:db8:1:2::/64", "2001:db8::/32"}, 1},
	} {
		k := compileKey(t, c.key)
		o, err := k.Overrides(c.patterns)
		if err != nil {
			t.Errorf("%s %v: %v", c.key, c.patterns, err)
			continue
		}
		if got := o.Of(keyOf(t, k, c.value)); got != c.want {
			t.Errorf("%s = %s is taken by %d of %v, want %d", c.key, c.value, got, c.patterns, c.want)
		}
	}
}

func TestOverrides_PatternThatNeverMatchesIsAnError(t *testing.T) {
	for _, c := range []struct {
		key      string
		patterns []string
		want     string
	}{
		{"$http_x_level", []string{""}, `"" never matches: a request without a value is not counted`},
		{"$http_x_level", []string{"**"}, `"**" matches every value: write its rate as rate`},
		{"$http_x_level", []string{"a*", "a**"}, `"a**" matches what "a*" does: drop one of both`},
		{"$http_x_level", []string{"a\nb"}, `"a\nb" never matches: values are text in UTF-8 without control characters`},
		{"$http_x_level", []string{"10.0.0.0/8"},
			`"10.0.0.0/8" never matches, for the key is $http_x_level: networks are for $remote_addr`},
		{"$host", []string{"Shop.example"}, `"Shop.example" never matches, for $host is in lower case: write "shop.example"`},
		{"$remote_addr", []string{"vip-*"},
			`"vip-*" is no network, and the key is $remote_addr: write it like "10.0.0.0/8"`},
		{"$remote_addr", []string{"10.1.0.0/8"}, `"10.1.0.0/8" has bits behind its prefix: write "10.0.0.0/8"`},
		{"$remote_addr", []string{"2001:db8::1"}, `"2001:db8::1" never matches, for a client is a /64 here: ` +
			`write "2001:db8::/64", or change ipv4_prefix or ipv6_prefix`},
		{"$remote_addr", []string{"::ffff:10.0.0.0/104"},
			`"::ffff:10.0.0.0/104" never matches, for such clients count as IPv4: write it like "10.0.0.0/8"`},
		{"$remote_addr", []string{"10.0.0.1", "10.0.0.1/32"}, `"10.0.0.1/32" matches what "10.0.0.1" does: drop one of both`},
		{"$remote_addr$host", []string{"10.0.0.0/8"},
			`the key "$remote_addr$host" has 2 variables, and a pattern is of one: write a [[limits.rate]] for one of them`},
	} {
		if _, err := compileKey(t, c.key).Overrides(c.patterns); err == nil || err.Error() != c.want {
			t.Errorf("%s %q:\n got %v\nwant %s", c.key, c.patterns, err, c.want)
		}
	}
}

func TestOverrides_LookupDoesNotAllocate(t *testing.T) {
	k := compileKey(t, "$http_x_level")
	o, err := k.Overrides([]string{"vip-*", "*-gold", "a*b*c", "x"})
	if err != nil {
		t.Fatal(err)
	}
	networks := compileKey(t, "$remote_addr")
	of, err := networks.Overrides([]string{"10.0.0.0/8", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	text, addr := keyOf(t, k, "user-gold"), keyOf(t, networks, "10.1.2.3")
	if n := testing.AllocsPerRun(100, func() {
		if o.Of(text) != 1 || of.Of(addr) != 0 {
			t.Fatal("another override was found")
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func FuzzOverrides(f *testing.F) {
	f.Add("vip-*", "vip-7")
	f.Add("a*b*c", "abbc")
	f.Add("*i*******************************0", "i00M\x8c\xffP\x06/\x95\xf4\xf5\xbah}U6\xd1/\x16\xc3\x181")
	f.Fuzz(func(t *testing.T, glob, value string) {
		part := compileKey(t, "$http_x_level").references()[0]
		p, err := patternPieces(glob, &part)
		if err != nil {
			return
		}
		want := slowMatch(glob, value)
		if got := (&overridePattern{pieces: p}).matches([]byte(value)); got != want {
			t.Errorf("%q matches %q: %v, want %v", glob, value, got, want)
		}
	})
}

// slowMatch keeps, of each beginning of glob, every end that it can have in value.
func slowMatch(glob, value string) bool {
	ends := make([]bool, len(value)+1)
	ends[0] = true
	for i := range len(glob) {
		next := make([]bool, len(ends))
		for end := range ends {
			if glob[i] == '*' {
				next[end] = ends[end] || end > 0 && next[end-1]
			} else if end > 0 {
				next[end] = ends[end-1] && value[end-1] == glob[i]
			}
		}
		ends = next
	}
	return ends[len(value)]
}

func BenchmarkOverrides_Of(b *testing.B) {
	k := compileKey(b, "$http_x_level")
	o, _ := k.Overrides([]string{"vip-*", "*-gold", "a*b*c", "x"})
	key := keyOf(b, k, "user-1234567")
	for b.Loop() {
		o.Of(key)
	}
}
