package proxy

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const signingKey = "a secret that only tests may know"

func anOrder() signed {
	return signed{
		method: []byte("POST"), target: []byte("/api/seckill/1001/order?from=app"),
		serial: "4f1c2b7e-8a3d-4c55-9d0e-1f6a7b8c9d0e", sku: []byte("1001"),
		quantity: 1, deadline: 1794265200000,
	}
}

func mustSigner(t testing.TB, key string) *signer {
	t.Helper()
	s, err := newSigner([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signature is the value by the words of the documentation, without pools and buffers.
func signature(key string, o signed) string {
	text := strings.Join([]string{"v1", string(o.method), string(o.target), o.serial, string(o.sku),
		strconv.FormatInt(o.quantity, 10), strconv.FormatInt(o.deadline, 10)}, "\n")
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return fmt.Sprintf("v1=%x", mac.Sum(nil))
}

func TestSignatureIsWhatItsDocumentationSays(t *testing.T) {
	for _, key := range []string{signingKey, strings.Repeat("k", minSignKey), strings.Repeat("longer than a block of SHA-256 ", 9)} {
		s, o := mustSigner(t, key), anOrder()
		for i := range 3 { // a desk is used again
			o.quantity += int64(i)
			if got, want := string(s.append([]byte("Sluice-Signature: "), o)), "Sluice-Signature: "+signature(key, o); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

func TestEveryFieldIsSigned(t *testing.T) {
	s := mustSigner(t, signingKey)
	seen := map[string]string{string(s.append(nil, anOrder())): "nothing changed"}
	for name, change := range map[string]func(*signed){
		"method":                func(o *signed) { o.method = []byte("PUT") },
		"target":                func(o *signed) { o.target = []byte("/api/seckill/1002/order?from=app") },
		"query":                 func(o *signed) { o.target = []byte("/api/seckill/1001/order?from=web") },
		"empty query":           func(o *signed) { o.target = []byte("/api/seckill/1001/order?") },
		"no query":              func(o *signed) { o.target = []byte("/api/seckill/1001/order") },
		"escapes":               func(o *signed) { o.target = []byte("/api/seckill/%31001/order") },
		"serial":                func(o *signed) { o.serial = "another" },
		"sku":                   func(o *signed) { o.sku = []byte("1002") },
		"quantity":              func(o *signed) { o.quantity = 2 },
		"deadline":              func(o *signed) { o.deadline++ },
		"serial and sku change": func(o *signed) { o.serial, o.sku = string(o.sku), []byte(o.serial) },
		"a byte moves on":       func(o *signed) { o.sku, o.quantity = []byte("100"), 11 },
	} {
		o := anOrder()
		change(&o)
		value := string(s.append(nil, o))
		if other, known := seen[value]; known {
			t.Errorf("%s: signed as with %s", name, other)
		}
		seen[value] = name
	}
}

func TestKeysSignApart(t *testing.T) {
	key := []byte(signingKey)
	s, err := newSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	want := string(s.append(nil, anOrder()))
	key[0]++ // the caller's, from now on
	if got := string(s.append(nil, anOrder())); got != want {
		t.Error("the signature follows the caller's slice")
	}
	if got := string(mustSigner(t, string(key)).append(nil, anOrder())); got == want {
		t.Error("two keys make one signature")
	}
}

func TestShortKeysDoNotSign(t *testing.T) {
	for n := range minSignKey {
		if s, err := newSigner(make([]byte, n)); s != nil || err == nil {
			t.Errorf("a key of %d bytes signs", n)
		}
	}
}

func TestOrdersAreSignedSideBySide(t *testing.T) {
	s := mustSigner(t, signingKey)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			o := anOrder()
			for i := range 200 {
				o.deadline = int64(1000*worker + i)
				if got, want := string(s.append(nil, o)), signature(signingKey, o); got != want {
					t.Errorf("got %q, want %q", got, want)
					return
				}
			}
		})
	}
	workers.Wait()
}

// FuzzSignedTextIsReadInOneWay cuts the text of any order that can reach the shop into its fields again.
func FuzzSignedTextIsReadInOneWay(f *testing.F) {
	f.Add([]byte("POST"), []byte("/order?x=1"), []byte("serial"), []byte("1001"), int64(1), int64(1794265200000))
	f.Add([]byte("PUT"), []byte("/a"), []byte("1\n2"), []byte("caf\xc3\xa0"), int64(7), int64(0))
	f.Fuzz(func(t *testing.T, method, target, serial, sku []byte, quantity, deadline int64) {
		for _, visible := range [][]byte{method, target, serial} {
			if bytes.ContainsFunc(visible, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
				t.Skip("it cannot reach the shop")
			}
		}
		if !ValidSKU(sku) {
			t.Skip("it cannot reach the shop")
		}
		o := signed{method, target, string(serial), sku, quantity, deadline}
		got := bytes.Split(o.appendText(nil), []byte("\n"))
		want := [][]byte{[]byte("v1"), method, target, serial, sku, strconv.AppendInt(nil, quantity, 10), strconv.AppendInt(nil, deadline, 10)}
		if !bytes.Equal(bytes.Join(got, []byte{0}), bytes.Join(want, []byte{0})) {
			t.Errorf("%q became %q", want, got)
		}
	})
}

func TestSigningDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s, o, dst := mustSigner(t, signingKey), anOrder(), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(200, func() { dst = s.append(dst[:0], o) }); n != 0 {
		t.Errorf("%v allocations a signature", n)
	}
}

func BenchmarkSign(b *testing.B) {
	s := mustSigner(b, signingKey)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		o, dst := anOrder(), make([]byte, 0, 128)
		for pb.Next() {
			dst = s.append(dst[:0], o)
		}
	})
}
