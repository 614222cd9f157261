package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/internal/redistest"
)

// roomPlace is what a person reads of a place in a waiting room.
type roomPlace struct {
	Phase, State, Ticket, Pass, Reason, Chance string
	Number                                     int64
	Ahead, ETA                                 *int64
	ClaimFrom                                  int64 `json:"claim_from_ms"`
	ClaimUntil                                 int64 `json:"claim_until_ms"`
}

// person is one who waits, with what a browser would keep.
type person struct {
	user, ticket, pass string
	number             int64
	began, ended       time.Time // of joining
}

// ask asks at one of the addresses of the room "rush", and keeps what comes.
func (p *person) ask(t *testing.T, g *running, method, what string, lines ...string) (s roomPlace, status int) {
	t.Helper()
	cookies := "Cookie: uid=" + p.user + "; sluice_room=" + p.ticket + "; sluice_pass_rush=" + p.pass
	a := g.ask(method, "/.sluice/room/rush"+what, append(lines, cookies)...)
	if err := json.Unmarshal([]byte(a.body), &s); err != nil {
		t.Errorf("%s %s: %d %s", method, what, a.status, a.body)
	}
	if s.Ticket != "" {
		p.ticket, p.number = s.Ticket, s.Number
	}
	if s.Pass != "" {
		p.pass = s.Pass
	}
	return s, a.status
}

// claims claims a pass once the notice of the call is over.
func (p *person) claims(t *testing.T, g *running) (s roomPlace, status int) {
	t.Helper()
	soon(t, p.user+" may claim", func() bool { s, status = p.ask(t, g, "POST", "/pass"); return status != 409 })
	return s, status
}

// order orders one unit.
func (p *person) order(t *testing.T, g *running) (status int, reason string) {
	t.Helper()
	a := g.ask("POST", "/api/seckill/1001/order", "Cookie: uid="+p.user, "Sluice-Pass: "+p.pass)
	return a.status, a.reason
}

// roomDocument is the public document.
type roomDocument struct {
	Phase                      string
	Issued, Serving, Threshold int64
	Early                      int64
	Draw                       struct {
		Commit, Seed, Beacon, DrawnBy string
		Key                           string `json:"beacon_key"`
		Round                         int64  `json:"beacon_round"`
		At                            int64  `json:"beacon_at_ms"`
	}
}

func (g *running) room(t *testing.T) (d roomDocument, a answer) {
	t.Helper()
	a = g.ask("GET", "/.sluice/room/rush")
	if err := json.Unmarshal([]byte(a.body), &d); err != nil {
		t.Fatal(err)
	}
	return d, a
}

const oldRoomKey, newRoomKey = "0123456789abcdef-old", "0123456789abcdef-new"

const tenUnits = "stock = { 1001 = 10 }"

// roomGates are gates before one sale with a room, and the file of its keys.
func roomGates(t *testing.T, n int, begins time.Time, settings ...string) (gates []*running, keys string) {
	t.Helper()
	return roomGatesOn(t, redistest.Start(t), n, begins, "", settings...)
}

// roomGatesOn are roomGates on a Redis, with more in their configuration than the room's settings.
func roomGatesOn(t *testing.T, r *redistest.Server, n int, begins time.Time, more string, settings ...string) (
	gates []*running, keys string,
) {
	t.Helper()
	return roomGatesBy(t, redisAt(r), n, begins, more, settings...)
}

// roomGatesBy are roomGatesOn by the settings of their Redis.
func roomGatesBy(t *testing.T, redis string, n int, begins time.Time, more string, settings ...string) (
	gates []*running, keys string,
) {
	t.Helper()
	shop := book(t, nil)
	keys = filepath.Join(t.TempDir(), "room.key")
	if err := os.WriteFile(keys, []byte(oldRoomKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	routes := strings.Replace(reserveRoutes, "user = \"$cookie_uid\"", "user = \"$cookie_uid\"\nroom = \"rush\"", 1)
	room := "[[room]]\nname = \"rush\"\nsale = \"rush\"\nopens = \"1h\"\nclaim_within = \"10m\"\npoll_ceiling = \"2s\"\n" +
		strings.Join(settings, "\n") + "\n"
	for range n {
		gates = append(gates, gate(t, more, redis, boundless, shop.setting(), "auth.room_key_file = \""+keys+"\"",
			room, saleOf(begins, tenUnits), routes))
	}
	return gates, keys
}

// opened waits until people may join at each of the gates.
func opened(t *testing.T, gates []*running) {
	t.Helper()
	for _, g := range gates {
		soon(t, "the room is open", func() bool { d, _ := g.room(t); return d.Phase == "pre_queue" })
	}
}

// crowdJoins has so many people join, some at a time, at the gates in turn.
func crowdJoins(t *testing.T, gates []*running, n int) []*person {
	t.Helper()
	people := make([]*person, n)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < n; i += 8 {
				people[i] = &person{user: fmt.Sprintf("u%d", i), began: time.Now()}
				if s, status := people[i].ask(t, gates[i%len(gates)], "POST", "/join"); status != 200 || s.Ticket == "" {
					t.Errorf("join: %d %+v", status, s)
				}
				people[i].ended = time.Now()
			}
		})
	}
	all.Wait()
	slices.SortFunc(people, func(a, b *person) int { return int(a.number - b.number) })
	for i, p := range people { // at whichever gate: who had a number before another one asked is before that one
		for _, later := range people[i+1:] {
			if later.ended.Before(p.began) {
				t.Errorf("number %d had joined before number %d began to", later.number, p.number)
			}
		}
	}
	return people
}

// states asks all where they stand.
func states(t *testing.T, g *running, people []*person) (called []int64) {
	t.Helper()
	for _, p := range people {
		s, _ := p.ask(t, g, "GET", "/me")
		if s.ClaimFrom != 0 {
			called = append(called, p.number)
		}
	}
	return called
}

func TestRoom_CallsInOrderForWhatIsFreeAndEndsWithTheStock(t *testing.T) {
	t.Parallel()
	begins := time.Now().Add(30 * time.Minute)
	gates, keys := roomGates(t, 2, begins)
	opened(t, gates)
	people := crowdJoins(t, gates, 200)
	for i, p := range people {
		if p.number != int64(i+1) {
			t.Fatalf("number %d was given out as number %d", i+1, p.number)
		}
	}
	first, last := people[0], people[199]
	if s, _ := first.ask(t, gates[1], "POST", "/join"); s.Number != 1 || s.Ticket != "" {
		t.Errorf("joining again: %+v", s)
	}
	if s, status := first.ask(t, gates[0], "POST", "/pass"); status != 409 || s.State != "waiting" {
		t.Errorf("a pass before the start: %d %+v", status, s)
	}

	rotateRoomKeys(t, gates, keys, first)

	// The last one waits for news twice: of the start, and of the end.
	var news []roomPlace
	var waits sync.WaitGroup
	waits.Go(func() {
		for phase := "pre_queue"; phase != "over" && len(news) < 10; {
			s, _ := last.ask(t, gates[1], "GET", "/me", "Prefer: wait=20")
			news, phase = append(news, s), s.Phase
		}
	})

	beginsAt(t, gates, begins, time.Now().Add(500*time.Millisecond))
	for _, g := range gates {
		soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Serving == 13 }) // 10 units × 1.3
	}
	called := states(t, gates[1], people[:30])
	if len(called) != 13 || called[12] != 13 {
		t.Errorf("called are %v", called)
	}
	if status, reason := last.order(t, gates[0]); status != 403 || reason != "room" {
		t.Errorf("an order without a pass: %d %s", status, reason)
	}
	for _, p := range people[:13] {
		if s, status := p.claims(t, gates[0]); status != 200 || s.Pass == "" {
			t.Fatalf("a pass: %d %+v", status, s)
		}
	}
	pass := first.pass
	first.pass = "" // it is lost, and claimed again
	if s, _ := first.ask(t, gates[1], "POST", "/pass"); s.Pass != pass {
		t.Errorf("claimed twice: %q, then %q", pass, s.Pass)
	}
	thief := person{user: "thief", pass: pass}
	if status, reason := thief.order(t, gates[0]); status != 403 || reason != "room" {
		t.Errorf("with the pass of another: %d %s", status, reason)
	}

	// A gate ends; its tickets and passes are good at the other.
	gates[0].die()
	for _, p := range people[:10] {
		if status, reason := p.order(t, gates[1]); status != 200 {
			t.Errorf("number %d orders: %d %s", p.number, status, reason)
		}
	}
	waits.Wait()
	if end := news[len(news)-1]; end.Phase != "over" || end.State != "waiting" {
		t.Errorf("the last one has heard %+v", news)
	}
	d, a := gates[1].room(t)
	if d.Phase != "over" || d.Serving != 13 || a.header.Get("Cache-Control") != "public, max-age=1" ||
		a.header.Get("Etag") == "" {
		t.Errorf("%+v %v", d, a.header)
	}
	late := person{user: "late"}
	if s, status := late.ask(t, gates[1], "POST", "/join"); s.Reason != "sold_out" {
		t.Errorf("joining after the end: %d %+v", status, s)
	}
}

// rotateRoomKeys gives the gates a new key beside the old one.
func rotateRoomKeys(t *testing.T, gates []*running, keys string, first *person) {
	t.Helper()
	if err := os.WriteFile(keys, []byte(newRoomKey+"\n"+oldRoomKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, g := range gates {
		g.rereads(t)
		if s, _ := first.ask(t, g, "GET", "/me"); s.State != "waiting" || s.Number != 1 {
			t.Errorf("gate %d, a ticket by the old key: %+v", i, s)
		}
	}
}

// beginsAt moves the sale of the gates: until everything is ready its start is far away.
func beginsAt(t *testing.T, gates []*running, was, at time.Time) {
	t.Helper()
	for _, g := range gates {
		text, err := os.ReadFile(g.file)
		if err != nil {
			t.Fatal(err)
		}
		moved := strings.Replace(string(text), saleOf(was, tenUnits), saleOf(at, tenUnits), 1)
		if moved == string(text) {
			t.Fatal("the sale is not in the file")
		}
		put(t, g.file, moved)
		g.rereads(t)
	}
}

// rereads has the gate read its files again.
func (g *running) rereads(t *testing.T) {
	t.Helper()
	if a := g.control("POST", "/api/v1/reload", ""); a.status != 200 {
		t.Fatalf("reload: %d %s", a.status, a.body)
	}
}

func TestRoom_DrawIsVerifiedFromPublishedDataAlone(t *testing.T) {
	t.Parallel()
	begins := time.Now().Add(30 * time.Minute)
	public := startBeacon(t)
	gates, _ := roomGates(t, 2, begins, "order = \"draw\"", public.settings())
	opened(t, gates)
	before, _ := gates[0].room(t)
	if len(before.Draw.Commit) != 64 || before.Draw.Seed != "" {
		t.Errorf("before the start: %+v", before)
	}
	people := crowdJoins(t, gates, 60)
	beginsAt(t, gates, begins, time.Now().Add(300*time.Millisecond))
	for _, g := range gates {
		soon(t, "the draw waits for its beacon", func() bool { d, _ := g.room(t); return d.Phase == "drawing" })
	}
	late := &person{user: "late"}
	if s, _ := late.ask(t, gates[0], "POST", "/join"); s.Number != 61 {
		t.Errorf("a late one: %+v", s)
	}
	beacon := public.draws(t, gates[0])
	for _, g := range gates {
		soon(t, "people are called", func() bool { d, _ := g.room(t); return d.Threshold > 0 })
	}
	d, _ := gates[1].room(t)
	if d.Draw.Commit != before.Draw.Commit || d.Draw.Beacon != beacon || d.Early != 60 {
		t.Errorf("after the draw: %+v", d)
	}
	const record = "/.sluice/room/rush/draw"
	soon(t, "the record has the threshold", func() bool {
		return !strings.Contains(gates[1].ask("GET", record).body, `"steps":[]`)
	})
	called := 0
	for i, p := range people {
		s, _ := p.ask(t, gates[i%2], "GET", "/me")
		if s.ClaimFrom != 0 {
			called++
		}
		if i%10 == 0 || s.ClaimFrom != 0 {
			said := ok(t, "room", "verify", "--user", p.user, "--record", "http://"+gates[1].front+record)
			if strings.Contains(said, "not yet") != (s.ClaimFrom == 0) {
				t.Errorf("%s is %s, and verified: %s", p.user, s.State, said)
			}
		}
	}
	if called < 2 || called > 35 { // 13 of 60, by chance
		t.Errorf("%d are called", called)
	}
	if s, _ := late.ask(t, gates[0], "GET", "/me"); s.State != "waiting" || s.Ahead == nil || *s.Ahead < 30 {
		t.Errorf("the late one: %+v", s)
	}
	wants(t, ok(t, "room", "status", "--admin", gates[1].admin), "rush", "open")
}

// Units of a paused SKU are held by no order, and may be sold later: the room is not over.
func TestRoom_StatusTellsUnitsOfAPausedSKUFromHeldOnes(t *testing.T) {
	t.Parallel()
	gates, _ := roomGates(t, 1, time.Now().Add(-time.Minute))
	g := gates[0]
	type units struct {
		Free, Held int64
		OffSale    int64 `json:"off_sale"`
	}
	shows := func(what string, want units) {
		soon(t, what, func() bool {
			var told struct{ Rooms []units }
			said := ok(t, "room", "status", "--json", "--admin", g.admin)
			return json.Unmarshal([]byte(said), &told) == nil && len(told.Rooms) == 1 && told.Rooms[0] == want
		})
	}
	ok(t, "stock", "set", "1001", "10", "--config", g.file)
	shows("ten are free", units{Free: 10})
	ok(t, "stock", "pause", "1001", "--config", g.file)
	shows("ten are off sale", units{OffSale: 10})
	wants(t, ok(t, "room", "status", "--admin", g.admin), "FREE  HELD  OFF SALE", "0     0     10")
	if d, _ := g.room(t); d.Phase == "over" {
		t.Error("the room is over, though its units may be sold later")
	}
	if held, off := g.metric("sluice_room_units", "room", "rush", "state", "held"),
		g.metric("sluice_room_units", "room", "rush", "state", "off_sale"); held != 0 || off != 10 {
		t.Errorf("sluice_room_units: %v held, %v off_sale; want 0, 10", held, off)
	}
}
