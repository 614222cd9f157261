package room

import (
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/proxy"
)

// standing is a room whose state does not change, without Redis behind it.
func standing(b testing.TB) *Room {
	b.Helper()
	r := &Room{o: Options{Rules: Rules{Name: "r", Pass: time.Minute, PollFloor: time.Second,
		PollCeiling: 20 * time.Second}, Now: func() int64 { return 1_000_000 }}, scope: []byte("r"), carried: &carried{}}
	r.waiters = map[*waiter]struct{}{}
	made, err := newSecrets([][]byte{key})
	if err != nil {
		b.Fatal(err)
	}
	r.secrets = made
	s := &State{Phase: Open, At: 1_000_000, Issued: 1_000_000, Serving: 500, Called: 500, Count: 600}
	for i := range 600 {
		s.Steps = append(s.Steps, Step{At: int64(400_000 + 1000*i), Serving: int64(i), Called: int64(i)})
	}
	r.publish(s, "", Sale{})
	return r
}

func BenchmarkRoom_Admits(b *testing.B) {
	r, user := standing(b), []byte("u1")
	pass := r.passes.Append(nil, r.view.Load().passes, user, 1_000_001)
	b.ReportAllocs()
	for b.Loop() {
		if !admits(r, 1_000_000, nil, user, pass) {
			b.Fatal("rejected")
		}
	}
}

func BenchmarkRoom_Document(b *testing.B) {
	r := standing(b)
	q := proxy.RoomQuestion{Time: 1_000_000, Client: &there{}}
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Answer(&q)
	}
}

func BenchmarkRoom_Me(b *testing.B) {
	r, user := standing(b), []byte("u1")
	q := proxy.RoomQuestion{Action: []byte("me"), User: user, Time: 1_000_000, Client: &there{},
		Signed: r.tickets.Append(nil, r.scope, user, Place{Number: 900_000, Joined: 999})}
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Answer(&q)
	}
}

func BenchmarkRoom_Tick(b *testing.B) {
	s := open(b, redistest.Start(b), nil)
	s.inPhase(b, Open)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.o.Store.Tick(b.Context(), &s.o.Rules, s.o.Sale(), s.o.Stock(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
