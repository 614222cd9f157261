package auth

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

func testOrder() SignedOrder {
	return SignedOrder{
		Method: []byte("POST"), Target: []byte("/api/seckill/1001/order?from=app"),
		Serial: "4f1c2b7e-8a3d-4c55-9d0e-1f6a7b8c9d0e", SKU: []byte("1001"),
		Quantity: 1, Deadline: 1794265200000,
	}
}

func newTestSigner(t testing.TB, key string) *Signer {
	t.Helper()
	s, err := NewSigner([]byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signature computes the value as the documentation defines it, without pools and buffers.
func signature(key string, o SignedOrder) string {
	text := strings.Join([]string{"v1", string(o.Method), string(o.Target), o.Serial, string(o.SKU),
		strconv.FormatInt(o.Quantity, 10), strconv.FormatInt(o.Deadline, 10)}, "\n")
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return fmt.Sprintf("v1=%x", mac.Sum(nil))
}

func TestSigner_SignsAsDocumented(t *testing.T) {
	long := strings.Repeat("longer than a block of SHA-256 ", 9)
	for _, key := range []string{signingKey, strings.Repeat("k", minKeySize), long} {
		s, o := newTestSigner(t, key), testOrder()
		for i := range 3 { // a state is used again
			o.Quantity += int64(i)
			got, want := string(s.Append([]byte("Sluice-Signature: "), o)), "Sluice-Signature: "+signature(key, o)
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

func TestSigner_CoversEveryField(t *testing.T) {
	s := newTestSigner(t, signingKey)
	seen := map[string]string{string(s.Append(nil, testOrder())): "nothing changed"}
	for name, change := range map[string]func(*SignedOrder){
		"method":                func(o *SignedOrder) { o.Method = []byte("PUT") },
		"target":                func(o *SignedOrder) { o.Target = []byte("/api/seckill/1002/order?from=app") },
		"query":                 func(o *SignedOrder) { o.Target = []byte("/api/seckill/1001/order?from=web") },
		"empty query":           func(o *SignedOrder) { o.Target = []byte("/api/seckill/1001/order?") },
		"no query":              func(o *SignedOrder) { o.Target = []byte("/api/seckill/1001/order") },
		"escapes":               func(o *SignedOrder) { o.Target = []byte("/api/seckill/%31001/order") },
		"serial":                func(o *SignedOrder) { o.Serial = "another" },
		"sku":                   func(o *SignedOrder) { o.SKU = []byte("1002") },
		"quantity":              func(o *SignedOrder) { o.Quantity = 2 },
		"deadline":              func(o *SignedOrder) { o.Deadline++ },
		"serial and sku change": func(o *SignedOrder) { o.Serial, o.SKU = string(o.SKU), []byte(o.Serial) },
		"a byte moves on":       func(o *SignedOrder) { o.SKU, o.Quantity = []byte("100"), 11 },
	} {
		o := testOrder()
		change(&o)
		value := string(s.Append(nil, o))
		if other, known := seen[value]; known {
			t.Errorf("%s: signed as with %s", name, other)
		}
		seen[value] = name
	}
}

func TestSigner_CopiesItsKey(t *testing.T) {
	key := []byte(signingKey)
	s, err := NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	want := string(s.Append(nil, testOrder()))
	key[0]++ // the caller's, from now on
	if got := string(s.Append(nil, testOrder())); got != want {
		t.Error("the signature depends on the caller's slice")
	}
	if got := string(newTestSigner(t, string(key)).Append(nil, testOrder())); got == want {
		t.Error("two keys make one signature")
	}
}

func TestSigner_IsSafeForConcurrentUse(t *testing.T) {
	s := newTestSigner(t, signingKey)
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			o := testOrder()
			for i := range 200 {
				o.Deadline = int64(1000*worker + i)
				if got, want := string(s.Append(nil, o)), signature(signingKey, o); got != want {
					t.Errorf("got %q, want %q", got, want)
					return
				}
			}
		})
	}
	workers.Wait()
}

// validSKU reports whether a request can name this SKU, as far as the signed text needs it.
func validSKU(b []byte) bool {
	return len(b) > 0 && !bytes.ContainsFunc(b, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// FuzzSignedOrder_TextHasOneReading cuts the text of any order that can reach the upstream into its fields again.
func FuzzSignedOrder_TextHasOneReading(f *testing.F) {
	f.Add([]byte("POST"), []byte("/order?x=1"), []byte("serial"), []byte("1001"), int64(1), int64(1794265200000))
	f.Add([]byte("PUT"), []byte("/a"), []byte("1\n2"), []byte("caf\xc3\xa0"), int64(7), int64(0))
	f.Fuzz(func(t *testing.T, method, target, serial, sku []byte, quantity, deadline int64) {
		for _, visible := range [][]byte{method, target, serial} {
			if bytes.ContainsFunc(visible, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
				t.Skip("it cannot reach the upstream")
			}
		}
		if !validSKU(sku) {
			t.Skip("it cannot reach the upstream")
		}
		o := SignedOrder{method, target, string(serial), sku, quantity, deadline}
		got := bytes.Split(o.appendText(nil), []byte("\n"))
		want := [][]byte{
			[]byte("v1"), method, target, serial, sku,
			strconv.AppendInt(nil, quantity, 10), strconv.AppendInt(nil, deadline, 10),
		}
		if !bytes.Equal(bytes.Join(got, []byte{0}), bytes.Join(want, []byte{0})) {
			t.Errorf("%q became %q", want, got)
		}
	})
}

func TestSigner_DoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	s, o, dst := newTestSigner(t, signingKey), testOrder(), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(200, func() { dst = s.Append(dst[:0], o) }); n != 0 {
		t.Errorf("%v allocations a signature", n)
	}
}

func BenchmarkSigner(b *testing.B) {
	s := newTestSigner(b, signingKey)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		o, dst := testOrder(), make([]byte, 0, 128)
		for pb.Next() {
			dst = s.Append(dst[:0], o)
		}
	})
}
