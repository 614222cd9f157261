package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"
)

func newTestTokens(t testing.TB, key string) *OrderTokens {
	t.Helper()
	m, err := newOrderTokens([]byte(key), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOrderTokens_ValidForUserSKUAndTwoSlots(t *testing.T) {
	here, there := newTestTokens(t, secret), newTestTokens(t, secret)
	const made = 1_800_000_030_000 // the middle of a slot
	token := here.Append(nil, []byte("1001"), []byte("7"), made)
	if len(token) != sumTextLength {
		t.Errorf("%q has %d letters, want %d", token, len(token), sumTextLength)
	}
	for _, c := range []struct {
		sku, user string
		after     int64
		want      bool
	}{
		{"1001", "7", 0, true},
		{"1001", "7", 29_999, true},
		{"1001", "7", 30_000, true}, // the next slot
		{"1001", "7", 89_999, true},
		{"1001", "7", 90_000, false},
		{"1001", "7", -30_001, false}, // the slot before it
		{"1001", "8", 0, false},
		{"1002", "7", 0, false},
		{"100", "17", 0, false},
		{"10017", "", 0, false},
		{"", "10017", 0, false},
	} {
		if got := there.Valid(token, []byte(c.sku), []byte(c.user), made+c.after); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if newTestTokens(t, "another key of 32 bytes or more!").Valid(token, []byte("1001"), []byte("7"), made) {
		t.Error("valid with another key")
	}
}

func TestOrderTokens_ChangedTokenIsInvalid(t *testing.T) {
	m := newTestTokens(t, secret)
	token := m.Append(nil, []byte("1001"), []byte("7"), 1)
	for i := range token {
		for _, c := range []byte("AZaz09-_=\x00") {
			changed := bytes.Clone(token)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if m.Valid(changed, []byte("1001"), []byte("7"), 1) {
				t.Errorf("%q is valid, and so is %q", token, changed)
			}
		}
	}
	for _, other := range [][]byte{nil, token[1:], append(bytes.Clone(token), 'A'), append(bytes.Clone(token), '=')} {
		if m.Valid(other, []byte("1001"), []byte("7"), 1) {
			t.Errorf("%q is valid", other)
		}
	}
}

func TestOrderTokens_DoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop values under the race detector")
	}
	m := newTestTokens(t, secret)
	buffer := make([]byte, 0, 64)
	sku, user := []byte("1001"), []byte("7")
	if n := testing.AllocsPerRun(100, func() {
		if !m.Valid(m.Append(buffer, sku, user, 1), sku, user, 1) {
			t.Fatal("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestKeys_TooShortAreErrors(t *testing.T) {
	if _, err := newOrderTokens([]byte("0123456789abcde"), time.Minute); err == nil {
		t.Error("a key of 15 bytes is accepted for tokens")
	}
	if _, err := newCookies([]byte("0123456789abcde")); err == nil {
		t.Error("a key of 15 bytes is accepted for cookies")
	}
	if _, err := newOrderTokens([]byte(secret), time.Millisecond); err == nil {
		t.Error("a slot of 1 ms is accepted")
	}
	for n := range minKeySize {
		if s, err := NewSigner(make([]byte, n)); s != nil || err == nil {
			t.Errorf("a key of %d bytes is accepted for signatures", n)
		}
	}
}

func TestCookies_AcceptOnlySignedValues(t *testing.T) {
	c, err := newCookies([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("7.a"))
	sum := h.Sum(nil)
	std, url := base64.StdEncoding.EncodeToString(sum), base64.RawURLEncoding.EncodeToString(sum)
	for _, mac := range []string{hex.EncodeToString(sum), std, std[:43], url, url + "="} {
		for _, prefix := range []string{"", "s:"} {
			if v, ok := c.Value([]byte(prefix + "7.a." + mac)); !ok || string(v) != "7.a" {
				t.Errorf("%s7.a.%s: %q %v", prefix, mac, v, ok)
			}
		}
		for _, forged := range []string{
			"8.a." + mac, "7.a" + mac, "7." + mac, "." + mac, mac, "7.a." + mac[:42], "7.a.x" + mac, "7.a.=" + mac,
			"7.a.", "7.a", "", "s:",
		} {
			if v, ok := c.Value([]byte(forged)); ok {
				t.Errorf("%q is accepted as %q", forged, v)
			}
		}
	}
}

func TestCookies_DoNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("pools drop values under the race detector")
	}
	c, err := newCookies([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte("7"))
	cookie := []byte("7." + hex.EncodeToString(h.Sum(nil)))
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := c.Value(cookie); !ok {
			t.Fatal("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkOrderTokens_Valid(b *testing.B) {
	m := newTestTokens(b, secret)
	sku, user := []byte("1001"), []byte("7")
	token := m.Append(nil, sku, user, 1)
	b.ReportAllocs()
	for b.Loop() {
		m.Valid(token, sku, user, 1)
	}
}
