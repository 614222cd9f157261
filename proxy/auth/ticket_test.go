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

func tickets(t testing.TB, key string) *Tickets {
	t.Helper()
	m, err := NewTickets([]byte(key), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTicketIsGoodForItsUserItsSKUAndTwoSlots(t *testing.T) {
	here, there := tickets(t, secret), tickets(t, secret)
	const made = 1_800_000_030_000 // the middle of a slot
	ticket := here.Append(nil, []byte("1001"), []byte("7"), made)
	if len(ticket) != TicketLength {
		t.Errorf("%q has %d letters, want %d", ticket, len(ticket), TicketLength)
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
		if got := there.Valid(ticket, []byte(c.sku), []byte(c.user), made+c.after); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if tickets(t, "another key of 32 bytes or more!").Valid(ticket, []byte("1001"), []byte("7"), made) {
		t.Error("good by another key")
	}
}

func TestChangedTicketIsNotGood(t *testing.T) {
	m := tickets(t, secret)
	ticket := m.Append(nil, []byte("1001"), []byte("7"), 1)
	for i := range ticket {
		for _, c := range []byte("AZaz09-_=\x00") {
			changed := bytes.Clone(ticket)
			if changed[i] == c {
				continue
			}
			changed[i] = c
			if m.Valid(changed, []byte("1001"), []byte("7"), 1) {
				t.Errorf("%q is good, and so is %q", ticket, changed)
			}
		}
	}
	for _, other := range [][]byte{nil, ticket[1:], append(bytes.Clone(ticket), 'A'), append(bytes.Clone(ticket), '=')} {
		if m.Valid(other, []byte("1001"), []byte("7"), 1) {
			t.Errorf("%q is good", other)
		}
	}
}

func TestTicketDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector pools lose what they keep")
	}
	m := tickets(t, secret)
	room := make([]byte, 0, 64)
	sku, user := []byte("1001"), []byte("7")
	if n := testing.AllocsPerRun(100, func() {
		if !m.Valid(m.Append(room, sku, user, 1), sku, user, 1) {
			t.Fatal("not good")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestShortKeyIsRefused(t *testing.T) {
	if _, err := NewTickets([]byte("0123456789abcde"), time.Minute); err == nil {
		t.Error("a key of 15 bytes makes tickets")
	}
	if _, err := NewCookies([]byte("0123456789abcde")); err == nil {
		t.Error("a key of 15 bytes verifies cookies")
	}
	if _, err := NewTickets([]byte(secret), time.Millisecond); err == nil {
		t.Error("a slot of 1 ms")
	}
}

func TestSignedCookieIsBelievedAndNoOther(t *testing.T) {
	c, err := NewCookies([]byte(secret))
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
		for _, forged := range []string{"8.a." + mac, "7.a" + mac, "7." + mac, "." + mac, mac, "7.a." + mac[:42], "7.a.x" + mac, "7.a.", "7.a", "", "s:", "7.a.=" + mac} {
			if v, ok := c.Value([]byte(forged)); ok {
				t.Errorf("%q is believed, of %q", forged, v)
			}
		}
	}
}

func BenchmarkTicket(b *testing.B) {
	m := tickets(b, secret)
	sku, user := []byte("1001"), []byte("7")
	ticket := m.Append(nil, sku, user, 1)
	b.ReportAllocs()
	for b.Loop() {
		m.Valid(ticket, sku, user, 1)
	}
}
