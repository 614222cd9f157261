package room

import (
	_ "embed" // for the page that verifies
	"math"
	"strconv"
	"strings"
	"time"

	"sluice/proxy"
	"sluice/proxy/reject"
)

const (
	typeHTML      = "text/html; charset=utf-8"
	calledRefresh = 5 * time.Second  // to one who is called: the time that is left
	overRefresh   = 30 * time.Second // at the end: units may come back
)

// verifyHTML recomputes a place from the record of the draw, in the browser.
//
//go:embed verify.html
var verifyHTML string

// builtInPages are those of a room without pages of its own.
func builtInPages() (reject.RoomPages, error) {
	return reject.NewRoomPages(reject.Options{Languages: []string{"zh-CN", "en"}})
}

// page is what a browser shows. It needs no script: it reloads while the client waits.
func (r *Room) page(q *proxy.RoomQuestion, m *me, back string) []byte {
	p := r.o.Pages.In(q.Language)
	state, action, button := shown(m)
	values := map[string]string{"lang": p.Lang(), "title": p.Text("room_" + state), "room": m.Room, "state": state,
		"phase": string(m.Phase), "back": back, "back_label": p.Text("room_back"), "message": m.Message,
		"verify_label": p.Text("room_verify")}
	if action != "" {
		values["action"] = "/.sluice/room/" + m.Room + "/" + action + "?back=" + queryOf(back)
		values["button"] = p.Text(button)
	}
	switch state {
	case "waiting":
		pause := max(time.Duration(m.Poll)*time.Millisecond, time.Second)
		values["refresh"] = strconv.FormatFloat(math.Ceil(10*pause.Seconds())/10, 'f', -1, 64)
		_, values["refresh_text"] = counted(p, "room_refresh", int64(r.o.Rules.ClaimWithin/time.Second))
		tellPlace(p, m, values)
	case "called":
		values["refresh"] = strconv.Itoa(int(calledRefresh / time.Second))
		if left := m.ClaimUntil - m.ServerTime; left > 0 {
			_, values["note"] = counted(p, "room_until", (left+999)/1000)
		}
	case "passed":
		if r.o.Stock != nil {
			_, values["note"] = counted(p, "room_order_soon", int64(r.o.Rules.ClaimWithin/time.Second))
		}
	case "over":
		values["refresh"] = strconv.Itoa(int(overRefresh / time.Second))
	}
	if m.Chance == NoChance {
		values["chance_text"] = p.Text("room_chance")
	}
	notes := map[Phase]string{Closed: "room_early", PreQueue: "room_early", Drawing: "room_drawing",
		Hold: "room_hold", LastChance: "room_last"}
	if note := notes[m.Phase]; note != "" && values["note"] == "" {
		values["note"] = p.Text(note)
	}
	if m.Score != nil {
		values["verify"] = "/.sluice/room/" + m.Room + "/verify"
	}
	return p.Render(values)
}

// shown is which of the states of the page m is, and what its button does and says; "" = there is none.
func shown(m *me) (state, action, button string) {
	switch {
	case m.Phase == Off:
		return "off", "", ""
	case m.State == hasPassed:
		return "passed", "", ""
	case m.Phase == Over:
		return "over", "", ""
	case m.State == IsCalled && m.Phase.Passes():
		return "called", "pass", "room_take_pass"
	case m.State == IsWaiting, m.State == IsCalled:
		return "waiting", "", ""
	case m.State == IsMissed:
		return "missed", "join", "join_room"
	}
	return "join", "join", "join_room"
}

// tellPlace tells what is known, and no number that is not.
func tellPlace(p *reject.RoomPage, m *me, values map[string]string) {
	if m.Ahead != nil {
		values["ahead"], values["ahead_text"] = counted(p, "room_ahead", *m.Ahead)
		switch *m.Ahead {
		case 0:
			values["ahead_text"] = p.Text("room_next")
		case 1:
			values["ahead_text"] = p.Text("room_ahead_one")
		}
	}
	if m.ETA != nil {
		values["eta"], values["eta_text"] = counted(p, "room_eta", (*m.ETA+999)/1000)
	}
}

// counted is n, and the text of key with n in it.
func counted(p *reject.RoomPage, key string, n int64) (number, text string) {
	number = strconv.FormatInt(n, 10)
	return number, strings.Replace(p.Text(key), "{n}", number, 1)
}
