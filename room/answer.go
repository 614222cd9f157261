package room

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice/internal/octets"
	"sluice/proxy"
	"sluice/proxy/reject"
)

const (
	typeJSON = "application/json"
)

func hexadecimal(n uint64) string { return strconv.FormatUint(n, 36) }

// Answer implements proxy.Room.
func (r *Room) Answer(q *proxy.RoomQuestion) proxy.RoomAnswer {
	action := string(q.Action)
	switch {
	case action == "" && !q.Post:
		return r.answerDocument(q)
	case action == "draw" && !q.Post:
		return r.answerDraw()
	case action == "verify" && !q.Post:
		return proxy.RoomAnswer{Status: http.StatusOK, Type: typeHTML, Body: []byte(verifyHTML), Tag: `W/"1"`, Mark: `"1"`}
	case action == "me" && !q.Post:
		return r.answerMe(q)
	case action == "join" && q.Post:
		return r.answerJoin(q)
	case action == "pass" && q.Post:
		return r.answerPass(q)
	}
	return proxy.RoomAnswer{Rejection: reject.NoRoute}
}

// answerDocument answers with the public document.
func (r *Room) answerDocument(q *proxy.RoomQuestion) proxy.RoomAnswer {
	v := r.view.Load()
	if r.waits(q) {
		if r.parks(q, &waiter{phase: v.state.Phase, number: -1, score: -1}) {
			return proxy.RoomAnswer{Suspended: true}
		}
		v = r.view.Load() // it may have the news for which the client does not have to wait
	}
	r.polls.Add(1)
	return proxy.RoomAnswer{Status: http.StatusOK, Type: typeJSON, Body: v.doc, Tag: v.tag, Mark: v.mark}
}

// at is the state, as if it was read at a time of the shared clock.
func (v *view) at(unixMS int64) *State {
	s := *v.state
	s.At = max(unixMS, s.At)
	return &s
}

// look reads the ticket of q, and tells where it stands.
func (r *Room) look(q *proxy.RoomQuestion, v *view) (place Place, pos Position, has bool) {
	place, err := r.tickets.Read(q.Signed, r.scope, q.User)
	if err != nil {
		return place, pos, false
	}
	return place, r.o.Rules.Position(v.at(q.Time), v.final, place, q.User), true
}

// describe is what q's client reads of itself.
func (r *Room) describe(q *proxy.RoomQuestion, v *view) me {
	s := v.state
	m := me{Room: r.o.Rules.Name, ServerTime: q.Time, Phase: s.Phase, State: hasNone, Message: s.Message,
		Poll: r.o.Rules.Ceiling(s).Milliseconds()}
	if age := q.Time - s.At; age >= staleAfter.Milliseconds() {
		m.Stale = age
	}
	if s.Phase == PreQueue || s.Phase == Closed {
		m.StartsAt = v.sale.Starts
	}
	if s.Phase == LastChance {
		m.Returns = s.Returns
	}
	if q.Page {
		m.Barred = r.notJoined(v, q.Time).Rejection
	}
	place, pos, has := r.look(q, v)
	if !has {
		return m
	}
	if m.State = pos.State; pos.State == IsInvalid {
		return m
	}
	m.Number, m.Chance, m.ClaimFrom, m.ClaimUntil = place.Number, pos.Chance, pos.From, pos.Until
	for _, f := range []struct {
		to    **int64
		value int64
	}{{&m.Score, pos.Score}, {&m.Ahead, pos.Ahead}, {&m.ETA, pos.ETA}} {
		if f.value >= 0 {
			*f.to = &f.value
		}
	}
	m.Poll = r.o.Rules.NextPoll(v.at(q.Time), &pos).Milliseconds()
	if ends := r.passes.Ends(q.Pass, v.passes, q.User); q.Time < ends {
		m.State, m.PassUntil = hasPassed, ends
	}
	return m
}

// answerMe tells a client where it stands. One that waits for news hears when it is called, or when the phase changes.
// From then on it is told when it may claim its pass, and waits for nothing else.
func (r *Room) answerMe(q *proxy.RoomQuestion) proxy.RoomAnswer {
	v := r.view.Load()
	if r.waits(q) && !q.Page {
		w := &waiter{phase: v.state.Phase, number: -1, score: -1}
		place, pos, has := r.look(q, v)
		if has {
			w.number, w.score = place.Number, pos.Score // no number is called before the draw is made
		}
		if (!has || pos.State == IsWaiting) && r.parks(q, w) {
			return proxy.RoomAnswer{Suspended: true}
		}
		v = r.view.Load() // it may have the news for which the client does not have to wait
	}
	r.polls.Add(1)
	m := r.describe(q, v)
	return r.answer(q, http.StatusOK, &m)
}

// waits reports that the client of q wants to wait for news, and has not waited yet.
func (r *Room) waits(q *proxy.RoomQuestion) bool {
	return len(q.Prefer) > 0 && octets.PreferredWait(q.Prefer, maxWait) > 0 && !q.Client.Resumed()
}

// parks has w wait for news, and reports whether it does.
func (r *Room) parks(q *proxy.RoomQuestion, w *waiter) bool {
	w.client, w.until = q.Client, end(time.Now(), octets.PreferredWait(q.Prefer, maxWait))
	return r.park(w, r.view.Load)
}

// answerJoin gives the client a ticket: the one that it shows, where that still waits; else a new one.
func (r *Room) answerJoin(q *proxy.RoomQuestion) proxy.RoomAnswer {
	v := r.view.Load()
	no := r.notJoined(v, q.Time)
	told := q.Page && (no.Rejection == reject.Paused || no.Rejection == reject.NotStarted) // by the page
	if no.Rejection != reject.Admitted && !told {
		return no
	}
	_, pos, has := r.look(q, v)
	if told || v.state.Phase == Off || has && (pos.State == IsWaiting || pos.State == IsCalled) {
		m := r.describe(q, v)
		return r.answer(q, http.StatusOK, &m)
	}
	if wait, ok := r.rate.Acquire(int64(time.Since(r.began)), q.User); !ok {
		return proxy.RoomAnswer{Rejection: reject.Rate, Wait: wait}
	}
	q.Client.StepAside()
	n, err := r.joins.Do(context.Background(), "", string(q.User))
	if err != nil {
		r.failed.Add(1)
		r.rate.Reset(q.User) // it has taken no number
		return proxy.RoomAnswer{Rejection: reject.Overloaded}
	}
	place := Place{Number: n.number, Joined: n.at / 1000}
	if n.early {
		place.Flags = Early
	}
	r.joined.Add(1)
	q.Signed = r.tickets.Append(nil, r.scope, q.User, place)
	m := r.describe(q, r.view.Load())
	m.Signed = string(q.Signed)
	a := r.answer(q, http.StatusOK, &m)
	ticket, _ := proxy.RoomCookies(r.o.Rules.Name)
	a.Cookie = cookie(ticket, m.Signed, "/.sluice/room/"+r.o.Rules.Name, ticketKept, q.Secure)
	return a
}

// notJoined is why no client may join now.
func (r *Room) notJoined(v *view, unixMS int64) proxy.RoomAnswer {
	switch p := v.state.Phase; {
	case v.word == OverrideDrain && p.Admits():
		return proxy.RoomAnswer{Rejection: reject.Paused}
	case p.Admits(), p == Off:
		return proxy.RoomAnswer{}
	case p == Closed:
		opens := v.sale.Starts - r.o.Rules.Opens.Milliseconds()
		return proxy.RoomAnswer{Rejection: reject.NotStarted, Wait: time.Duration(max(opens-unixMS, 0)) * time.Millisecond}
	case p == Over && v.state.Stocked && !v.sale.Ended && unixMS < v.sale.Ends:
		return proxy.RoomAnswer{Rejection: reject.SoldOut}
	case p == Over:
		return proxy.RoomAnswer{Rejection: reject.Ended}
	}
	return proxy.RoomAnswer{Rejection: reject.Paused}
}

// answerPass gives a pass to a client that is called, once the notice is over. One that has a pass gets the same.
func (r *Room) answerPass(q *proxy.RoomQuestion) proxy.RoomAnswer {
	v := r.view.Load()
	place, pos, has := r.look(q, v)
	ends := r.passes.Ends(q.Pass, v.passes, q.User)
	if passed := q.Time < ends; passed || v.state.Phase == Off {
		m := r.describe(q, v)
		if passed {
			m.State, m.Pass, m.PassUntil = hasPassed, string(q.Pass), ends
		}
		return r.answer(q, http.StatusOK, &m)
	}
	if !has || pos.State != IsCalled || !v.state.Phase.Passes() {
		m := r.describe(q, v)
		return r.answer(q, http.StatusConflict, &m)
	}
	q.Client.StepAside()
	until, err := r.claims.Do(context.Background(), "", Claim{User: string(q.User), From: pos.From,
		waited: waited(place.Joined*1000, pos.From, v.state.Starts)})
	if err != nil { // a person who is called gets a pass also while Redis is away; it is not counted
		r.failed.Add(1)
		until = q.Time + r.o.Rules.Pass.Milliseconds()
	}
	r.passed.Add(1)
	q.Pass = r.passes.Append(nil, v.passes, q.User, until) // however often it is claimed it is the same
	m := r.describe(q, v)
	m.State, m.Pass, m.PassUntil = hasPassed, string(q.Pass), until
	a := r.answer(q, http.StatusOK, &m)
	_, pass := proxy.RoomCookies(r.o.Rules.Name)
	a.Cookie = cookie(pass, m.Pass, "/", time.Duration(until-q.Time)*time.Millisecond, q.Secure)
	return a
}

// ticketKept is for how long a browser keeps a ticket, also where it is closed: longer than rooms are open before a
// start.
const ticketKept = 14 * 24 * time.Hour

// cookie is the value of Set-Cookie.
func cookie(name, value, path string, kept time.Duration, secure bool) string {
	text := name + "=" + value + "; Path=" + path + "; Max-Age=" + strconv.Itoa(int(kept/time.Second)) +
		"; HttpOnly; SameSite=Lax"
	if secure {
		text += "; Secure"
	}
	return text
}

// answer is m as JSON, or for a browser the page; behind a POST the page is another request.
func (r *Room) answer(q *proxy.RoomQuestion, status int, m *me) proxy.RoomAnswer {
	if !q.Page {
		return proxy.RoomAnswer{Status: status, Type: typeJSON, Body: m.appendJSON(make([]byte, 0, 384))}
	}
	back := backPath(decoded(backOf(q.Query)))
	if q.Post {
		return proxy.RoomAnswer{Status: http.StatusSeeOther, Type: typeHTML,
			Location: "/.sluice/room/" + r.o.Rules.Name + "/me?back=" + queryOf(back)}
	}
	return proxy.RoomAnswer{Status: http.StatusOK, Type: typeHTML, Body: r.page(q, m, back)}
}

// backOf is the value of back in a query, not decoded.
func backOf(query []byte) []byte {
	for len(query) > 0 {
		var field []byte
		field, query = octets.Cut(query, '&')
		if value, ok := bytes.CutPrefix(field, []byte("back=")); ok {
			return value
		}
	}
	return nil
}

// decoded is a path that may be escaped as a whole: a path itself begins with "/". What is no escape is no path.
func decoded(path []byte) []byte {
	if len(path) == 0 || path[0] != '%' {
		return path
	}
	plain, err := url.QueryUnescape(string(path))
	if err != nil {
		return nil
	}
	return []byte(plain)
}

// queryOf is path as a value of a query: escaped as a whole where it would end before.
func queryOf(path string) string {
	if strings.Contains(path, "&") {
		return url.QueryEscape(path)
	}
	return path
}

// backPath is a path of this host that means nothing to the page or header around it; else "/".
func backPath(path []byte) string {
	plain := func(c rune) bool {
		return c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			bytes.ContainsRune([]byte("-._~/%=?&@:,"), c))
	}
	if len(path) == 0 || len(path) > 1000 || path[0] != '/' || len(path) > 1 && path[1] == '/' ||
		bytes.ContainsFunc(path, func(c rune) bool { return !plain(c) }) {
		return "/"
	}
	return string(path)
}
