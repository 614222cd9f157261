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
	overRefresh   = 30 * time.Second // before the room opens, and at the end: units may come back
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
		values["refresh_text"] = timed(p, "room_refresh", r.o.Rules.ClaimWithin)
		tellPlace(p, m, values)
	case "called":
		values["refresh"] = strconv.Itoa(int(calledRefresh / time.Second))
		if left := time.Duration(m.ClaimUntil-m.ServerTime) * time.Millisecond; left > 2*time.Minute {
			values["note"] = timed(p, "room_until", left.Truncate(time.Minute)) // it never says more than there is
		} else if left > 0 {
			values["note"] = timed(p, "room_until", left)
		}
	case "passed":
		if r.o.Stock != nil {
			values["note"] = timed(p, "room_order_soon", r.o.Rules.ClaimWithin)
		}
	case "over":
		values["refresh"] = strconv.Itoa(int(overRefresh / time.Second))
		values["note"] = p.Text("may_return")
		if m.Barred == reject.Ended {
			values["title"], values["note"] = p.Text("room_ended"), ""
		}
	}
	if m.Chance == NoChance {
		values["chance_text"] = p.Text("room_chance")
	}
	if values["note"] == "" {
		values["note"] = r.phaseNote(p, m)
	}
	switch {
	case m.Phase == Closed:
		values["refresh"] = strconv.Itoa(int(overRefresh / time.Second))
	case action == "" && (state == "join" || state == "missed"):
		values["note"] = p.Text("room_drain")
	}
	if state == "join" {
		values["note"] = p.Sentences(p.Text("not_in_line"), values["note"])
	}
	if m.Score != nil {
		values["verify"] = "/.sluice/room/" + m.Room + "/verify"
	}
	return p.Render(values)
}

// phaseNote is what the phase means for one who waits, or would join; "" = nothing more.
func (r *Room) phaseNote(p *reject.RoomPage, m *me) string {
	starts := time.Duration(m.StartsAt-m.ServerTime) * time.Millisecond
	switch m.Phase {
	case Closed:
		return timed(p, "room_closed", max(starts-r.o.Rules.Opens, 1))
	case PreQueue:
		return timed(p, "room_early", max(starts, 1))
	case Drawing:
		return p.Text("room_drawing")
	case Hold:
		return p.Text("room_hold")
	case LastChance:
		return p.Text("room_last")
	}
	return ""
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
		state = "missed"
	default:
		state = "join"
	}
	if m.Barred != reject.Admitted {
		return state, "", ""
	}
	return state, "join", "join_room"
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
		values["eta"] = strconv.FormatInt((*m.ETA+999)/1000, 10)
		values["eta_text"] = timed(p, "room_eta", time.Duration(*m.ETA)*time.Millisecond)
	}
}

// counted is n, and the text of key with n in it.
func counted(p *reject.RoomPage, key string, n int64) (number, text string) {
	number = strconv.FormatInt(n, 10)
	return number, strings.Replace(p.Text(key), "{n}", number, 1)
}

// timed is the text of key with a time in it: whole seconds, minutes or hours, rounded up.
func timed(p *reject.RoomPage, key string, d time.Duration) string {
	unit, of := time.Second, "room_seconds"
	switch {
	case d > 2*time.Hour:
		unit, of = time.Hour, "room_hours"
	case d > 2*time.Minute:
		unit, of = time.Minute, "room_minutes"
	case d <= time.Second:
		of = "room_second"
	}
	_, lasts := counted(p, of, int64((d+unit-1)/unit))
	return strings.Replace(p.Text(key), "{time}", lasts, 1)
}
