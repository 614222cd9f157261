package settle

import (
	"encoding/hex"
	"fmt"
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
		r := rangeOf(id, []string{a, b, c, d})
		entries, err := r.entries()
		if err != nil {
			return
		}
		e := entries[0]
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
	r := rangeOf("1789000000-7", []string{"total", "10", "state", "on"})
	entries, err := r.entries()
	if err != nil {
		t.Fatal(err)
	}
	if f := entries[0].Fingerprint(); hex.EncodeToString(f[:]) != "41cffa14177345e7" {
		t.Errorf("%x, %v", f, err)
	}
}

// rangeOf is what Redis replies to XRANGE of one entry.
func rangeOf(id string, fields []string) reply {
	return reply{left: "*1\r\n*2\r\n" + replyOf([]string{id}).left +
		fmt.Sprintf("*%d\r\n", len(fields)) + replyOf(fields).left}
}

func FuzzReply(f *testing.F) {
	f.Add(rangeOf("1-1", []string{"total", "1", "r:s", "C|1|0|u\x00\r\n|x", "odd"}).left)
	f.Add("*1\r\n*2\r\n$3\r\n1-1\r\n*1\r\n$99\r\nshort\r\n")
	f.Add("*-1\r\n")
	f.Add("*0\r\n")
	f.Add("*99999999999999999999\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := reply{left: text}
		entries, err := r.entries()
		if err != nil || len(entries) != 1 {
			return
		}
		words := entries[0].fields.words()
		r = rangeOf(entries[0].Position.String(), words)
		again, err := r.entries()
		if err != nil || len(again) != 1 || !slices.Equal(again[0].fields.words(), words) {
			t.Errorf("%q is written, and read as %+v, %v", text, again, err)
		}
	})
}

// A reply that is cut anywhere is a fault, and never fewer changes.
func TestReply_CutShortIsAFault(t *testing.T) {
	whole := rangeOf("1-1", []string{"total", "1", "held", "0", "sold", "1", "state", "on", "r:s", "C|1|0|\r\nann"})
	r := whole
	if entries, err := r.entries(); err != nil || len(entries) != 1 || entries[0].Fault != nil ||
		entries[0].Records[0].User != "\r\nann" {
		t.Fatalf("%+v, %v", entries, err)
	}
	for n := range whole.left {
		r := reply{left: whole.left[:n]}
		if entries, err := r.entries(); err == nil {
			t.Errorf("%q is read as %+v", whole.left[:n], entries)
		}
	}
}

// An entry is read into itself and its list of records.
func TestReply_EntryTakesOneAllocation(t *testing.T) {
	const entries = 100
	fields := []string{"op", "confirm", "total", "100", "held", "0", "sold", "1", "state", "on", "limit", "0",
		"opens", "0", "closes", "0", "at", "1789000000000", "r:serial", "C|1|0|ann"}
	one := rangeOf("1789000000000-7", fields).left
	text := fmt.Sprintf("*%d\r\n", entries) + strings.Repeat(one[len("*1\r\n"):], entries)
	allocations := testing.AllocsPerRun(10, func() {
		r := reply{left: text}
		if all, err := r.entries(); err != nil || len(all) != entries || len(all[9].Records) != 1 {
			t.Fatal(all, err)
		}
	})
	if allocations > entries+1 {
		t.Errorf("%.0f allocations for %d entries", allocations, entries)
	}
}
