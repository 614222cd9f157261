package settle

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func TestQuotedFields_AreReadBackToTheByte(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	words := []string{"", " ", `"`, `\`, "a\x00b", "\xff\xfe", "大闸", "\u202e", string(all), strings.Repeat("u", 1024)}
	text := quoted(words)
	for _, b := range []byte(text) {
		if b < ' ' || b > '~' {
			t.Fatalf("%q holds the byte %#x", text, b)
		}
	}
	if again, err := unquoted(text); err != nil || !slices.Equal(again, words) {
		t.Errorf("%q, %v: want %q", again, err, words)
	}
	if _, err := unquoted(`"a" b`); err == nil {
		t.Error("a text that is not quoted is read")
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add("1-1", "total", "1", "r:s", "C|1|0|u\x00\xff|x")
	f.Add("1-2", "r:", "|", "", "")
	f.Fuzz(func(t *testing.T, id, a, b, c, d string) {
		e, err := decodeEntry([]any{id, []any{a, b, c, d}})
		if err != nil {
			return
		}
		if e.Fault != nil && len(e.Records) > 0 {
			t.Errorf("an entry that cannot be read has records: %+v", e)
		}
		for _, r := range e.Records {
			if r.Quantity < 0 || !strings.Contains("HCXR", string(r.Status)) {
				t.Errorf("%+v", r)
			}
		}
		conflict := unreadable("sku", e, ErrData)
		if words, err := unquoted(conflict.Entry); err != nil || !slices.Equal(words, []string{a, b, c, d}) {
			t.Errorf("parked %q is read as %q, %v", conflict.Entry, words, err)
		}
	})
}

// Databases keep fingerprints: another version of Sluice must find the same.
func TestFingerprint_StaysTheSame(t *testing.T) {
	e, err := decodeEntry([]any{"1789000000-7", []any{"total", "10", "state", "on"}})
	if f := e.Fingerprint(); err != nil || hex.EncodeToString(f[:]) != "41cffa14177345e7" {
		t.Errorf("%x, %v", f, err)
	}
}
