package ledger

import (
	"fmt"
	"strings"
	"testing"
)

func TestRedisstore_RecordIsReadWhateverItsUserIs(t *testing.T) {
	for text, want := range map[string]Record{
		"H|2|1000|ann":         {Serial: "s", User: "ann", Quantity: 2, Status: 'H', Deadline: 1000},
		"C|1|0|":               {Serial: "s", User: "", Quantity: 1, Status: 'C', Deadline: 0},
		"X|0|7|":               {Serial: "s", User: "", Quantity: 0, Status: 'X', Deadline: 7},
		"R|1|7|a|b|\x00\n|":    {Serial: "s", User: "a|b|\x00\n|", Quantity: 1, Status: 'R', Deadline: 7},
		"H|2/c1|7|":            {Serial: "s", User: "", Quantity: 2, Cart: "c1", Status: 'H', Deadline: 7},
		"H|999999999999999|1|": {Serial: "s", User: "", Quantity: 999999999999999, Status: 'H', Deadline: 1},
	} {
		got, err := DecodeRecord("s", text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "H", "H|1", "H|1|2", "|1|2|u", "Q|1|2|u", "HC|1|2|u", "H|-1|2|u", "H|1.0|2|u",
		"H|1||u", "H|+1|2|u", "H|1|1234567890123456|u"} {
		if r, err := DecodeRecord("s", text); err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add("H|1|1000|ann")
	f.Add("R|1|7|a|b|\x00\n|")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := DecodeRecord("s", text)
		if err != nil {
			return
		}
		again := fmt.Sprintf("%c|%s|%d|%s", r.Status, unitsText(r.Quantity, r.Cart), r.Deadline, r.User)
		if back, err := DecodeRecord("s", again); err != nil || back != r {
			t.Fatalf("%q is read as %+v, and that as %+v, %v", text, r, back, err)
		}
		if !strings.HasSuffix(text, "|"+r.User) || r.Quantity < 0 || r.Deadline < 0 {
			t.Fatalf("%q: %+v", text, r)
		}
	})
}

func TestRedisstore_ReplyThatDoesNotFitIsAnError(t *testing.T) {
	codes := make([]Code, 1)
	for _, reply := range [][]any{
		{},
		{int64(1), int64(1), int64(1), "on"},
		{int64(1), int64(1), int64(1), "on", int64(1), int64(1)},
		{int64(1), int64(1), int64(1), int64(1), int64(1)},
		{"1", int64(1), int64(1), "on", int64(1)},
		{int64(1), int64(1), int64(1), "on", "1"},
	} {
		if _, err := decodeAnswers(reply, codes, UnknownSKU); err == nil {
			t.Errorf("%v: accepted", reply)
		}
		if _, _, err := stockOf(reply); err == nil {
			t.Errorf("%v: accepted as a stock", reply)
		}
	}
}
