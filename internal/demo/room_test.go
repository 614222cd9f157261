package demo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sluice/internal/load"
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

func TestReport_NamesWhatARoomHasBroken(t *testing.T) {
	fair := RoomReport{Early: 1900, Half: [2]int64{950, 950}, CalledOf: [2]int64{47, 60}, Called: 107, Verified: 1900}
	for want, change := range map[string]func(*Report){
		"":                              func(*Report) {},
		"while nothing was free":        func(r *Report) { r.Room.Unjust = 1 },
		"otherwise than the record":     func(r *Report) { r.Room.Wrong = 2 },
		"90 of 950":                     func(r *Report) { r.Room.CalledOf = [2]int64{90, 17} },
		"oversold 1":                    func(r *Report) { r.Shop.Oversold = 1 },
		"3 people were neither called":  func(r *Report) { r.Room.unaccountable = 3 },
		"draw: the gateway has gone":    func(r *Report) { r.Room.Failed = errors.New("the gateway has gone") },
		"more than one order":           func(r *Report) { r.Shop.Twice = 1 },
		"came to the shop more than on": func(r *Report) { r.Shop.Again = 1 },
	} {
		r, room := sound(), fair
		r.Room = &room
		change(&r)
		text := r.String()
		broken := strings.Contains(text, "BROKEN")
		if err := r.Err(); (err == nil) != (want == "") || broken != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%q: %v\n%s", want, err, text)
		}
	}
}

// Those who were to come before the start, and came after it since the machine was busy, have no part in the draw.
func TestRoom_LatecomersAreNotWeighedAgainstTheDraw(t *testing.T) {
	starts := time.UnixMilli(1_800_000_000_000)
	room, r := Room{Starts: starts}, RoomReport{}
	for i := range 1000 {
		outcome := load.RoomOutcome{Joined: starts.UnixMilli() - 1, Called: i%5 == 0}
		if i >= 500 { // the second half comes late, and no unit is left
			outcome = load.RoomOutcome{Joined: starts.UnixMilli() + 1, Home: load.SoldOut}
		}
		r.add(i, 1000, outcome, room.draws(outcome))
	}
	if r.Early != 500 || r.Half != [2]int64{500, 0} || r.bias() > mostBias {
		t.Errorf("%d early, halves %v, bias %v", r.Early, r.Half, r.bias())
	}
}

// Each person is called or told of the end, and each who is called goes home in one way: also a person who was
// called, came too late, joined again and then heard the end.
func TestRoomReport_CountsEachPersonOnce(t *testing.T) {
	const joined, over = 1_800_000_000_000, 1_800_000_009_000
	var r RoomReport
	for i, outcome := range []load.RoomOutcome{
		{Joined: joined, Called: true, Home: load.Bought},
		{Joined: joined, Called: true, Home: load.HadOne},
		{Joined: joined, Called: true, Home: load.SoldOut},             // ordered too late
		{Joined: joined, Called: true, Home: load.SoldOut, Over: over}, // came too late
		{Joined: joined, Called: true, Home: load.Rejected},
		{Joined: joined, Home: load.SoldOut, Over: over},
		{Joined: joined, Called: true, Home: load.GaveUp},              // is one of the absent
		{Joined: joined, Called: true, Home: load.SoldOut, Over: over}, // likewise, asked too late and heard the end
		{Home: load.GaveUp},
	} {
		if i == 6 {
			i = absentOf20
		}
		r.add(i, 10, outcome, false)
	}
	got := [...]int64{r.People, r.Called, r.Bought, r.Absent, r.Nothing, r.Over, r.unaccountable}
	if want := [...]int64{8, 7, 2, 1, 3, 1, 1}; got != want {
		t.Errorf("people, called, bought, absent, nothing, over, unaccountable: %v, want %v", got, want)
	}
}
