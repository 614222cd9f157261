package demo

import (
	"errors"
	"strings"
	"testing"
)

func TestRoomSight_CountsCallsWhileNothingIsFree(t *testing.T) {
	at := func(ms int64, left string, threshold, serving int64) sight {
		return sight{ServerTime: ms, Left: left, Threshold: threshold, Serving: serving}
	}
	for name, c := range map[string]struct {
		seen []sight
		want int64
	}{
		"for a free unit":    {[]sight{at(1000, "few", 0, 0), at(1100, "none", 5, 0)}, 0},
		"for none":           {[]sight{at(1000, "none", 5, 0), at(1100, "none", 6, 0)}, 1},
		"by number":          {[]sight{at(1000, "none", 5, 1), at(1100, "none", 5, 2)}, 1},
		"stock not known":    {[]sight{at(1000, "", 5, 1), at(1100, "", 5, 2)}, 0},
		"a state not seen":   {[]sight{at(1000, "none", 5, 0), at(1200, "none", 6, 0)}, 0},
		"no one was called":  {[]sight{at(1000, "none", 5, 0), at(1100, "none", 5, 0)}, 0},
		"given back between": {[]sight{at(1000, "none", 5, 0), at(1100, "few", 5, 0), at(1200, "none", 6, 0)}, 0},
	} {
		var r roomSight
		for _, s := range c.seen {
			r.see(s)
		}
		if r.unjust != c.want {
			t.Errorf("%s: %d, want %d", name, r.unjust, c.want)
		}
	}
}

func TestRoomReport_NamesWhatIsBroken(t *testing.T) {
	fair := RoomReport{People: 1900, Late: 100, Half: [2]int64{950, 950}, CalledOf: [2]int64{47, 60}, Called: 107,
		Shop: ShopTotals{Units: 100, Orders: 100}, Verified: 1900}
	for want, change := range map[string]func(*RoomReport){
		"":                              func(*RoomReport) {},
		"while nothing was free":        func(r *RoomReport) { r.Unjust = 1 },
		"otherwise than the record":     func(r *RoomReport) { r.Wrong = 2 },
		"90 of 950":                     func(r *RoomReport) { r.CalledOf = [2]int64{90, 17} },
		"oversold 1":                    func(r *RoomReport) { r.Shop.Oversold = 1 },
		"3 people were neither called":  func(r *RoomReport) { r.unaccountable = 3 },
		"ask: the gateway has gone":     func(r *RoomReport) { r.Failed = errors.New("the gateway has gone") },
		"more than one order":           func(r *RoomReport) { r.Shop.Twice = 1 },
		"came to the shop more than on": func(r *RoomReport) { r.Shop.Again = 1 },
	} {
		r := fair
		change(&r)
		var out strings.Builder
		if err := r.Write(&out); err != nil {
			t.Fatal(err)
		}
		broken := strings.Contains(out.String(), "BROKEN")
		if err := r.Err(); (err == nil) != (want == "") || broken != (want != "") || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %v\n%s", want, err, out.String())
		}
	}
}
