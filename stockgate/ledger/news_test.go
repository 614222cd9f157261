package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// eventually waits until it is so, within a bound that says nothing about speed.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for range 20_000 {
		if so() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// listener keeps the news of a store.
type listener struct {
	mu     sync.Mutex
	news   []told
	missed int
}

func (l *listener) heard() []told {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]told(nil), l.news...)
}

func (l *listener) begins() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missed
}

// listen hears the news of s from now until the test ends.
func listen(t testing.TB, s teller) *listener {
	t.Helper()
	l := &listener{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		s.Listen(ctx, func(sku string, h Hint) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.news = append(l.news, told{sku, h})
		}, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.missed++
		})
	})
	t.Cleanup(func() { cancel(); all.Wait() })
	eventually(t, "listening", func() bool { return l.begins() > 0 })
	return l
}

func TestNewsAreToldWhenUnitsComeBackOrTheStateChangesAndOnlyThen(t *testing.T) {
	eachStore(t, func(t *testing.T, s Store) {
		l := listen(t, s.(teller))
		var want []told
		news := func() { want = append(want, told{"1001", stockOf1001(t, s).Hint}) }
		for i := range 5 {
			take(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		take(t, s, "late", "zoe") // a loser
		do(t, s, Release, "0")
		news()
		do(t, s, Release, "0")
		do(t, s, Release, "never heard of")
		do(t, s, Confirm, "1")
		do(t, s, Refund, "1")
		news()
		do(t, s, Adopt, "2")
		do(t, s, Adopt, "unheld")
		must[Stock](t)(s.SetTotal(t.Context(), "1001", 300, 2))
		news()
		must[Stock](t)(s.SetTotal(t.Context(), "1001", 9, 2))
		must[Stock](t)(s.SetTotal(t.Context(), "1001", 300, 2))
		news()
		do(t, s, Release, "3") // more than enough are free
		for _, state := range []State{Paused, Paused, On, Frozen, On, Ended} {
			before := stockOf1001(t, s).State
			must[Stock](t)(s.SetState(t.Context(), "1001", state))
			if state != before {
				news()
			}
		}
		stock := must[Stock](t)(s.SetTotal(t.Context(), "a|b:\x00\xff", 1, 0))
		want = append(want, told{"a|b:\x00\xff", stock.Hint})
		eventually(t, "the last news", func() bool { return len(l.heard()) >= len(want) })
		if err := differ("news", fmt.Sprint(l.heard()), fmt.Sprint(want)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMemoryTellsASlowListenerThatItMissedNews(t *testing.T) {
	m := NewMemory()
	must[Stock](t)(m.SetTotal(t.Context(), "1001", 5, 0))
	ctx, cancel := context.WithCancel(t.Context())
	begun, missed, all := make(chan bool), 0, sync.WaitGroup{}
	all.Go(func() {
		m.Listen(ctx, func(string, Hint) {}, func() {
			if missed++; missed == 1 {
				begun <- true // and it listens only when this returns
				<-begun
			} else {
				cancel()
			}
		})
	})
	<-begun
	for i := range 2 * earful {
		must[Stock](t)(m.SetState(t.Context(), "1001", []State{Paused, On}[i%2]))
	}
	begun <- true
	all.Wait()
	want(t, "times it may have missed news", missed, 2)
}

// across are two desks on connections of their own to one Redis with one unit, which the first desk's "winner" holds.
func across(t *testing.T, s *redistest.Server, memory time.Duration, user ...string) (here, there *Desk) {
	t.Helper()
	o := deskOptions()
	o.SoldOutMemory = memory
	options := optionsFor(s, 8)
	if len(user) > 0 {
		options.Username, options.Password = user[0], func() string { return user[1] }
	}
	var desks [2]*Desk
	for i := range desks {
		r := must[*Redis](t)(NewRedis(options))
		t.Cleanup(func() { r.Close() })
		if i == 0 {
			must[Stock](t)(r.SetTotal(t.Context(), sku, 1, 0))
		}
		desks[i] = opened(t, o, r, nil)
	}
	wants(t, "winner", desks[0].buy("winner", "won"), Held)
	return desks[0], desks[1]
}

// subscribers is how many listen at s.
func subscribers(s *redistest.Server) int64 {
	return s.Client.PubSubNumSub(context.Background(), newsChannel).Val()[newsChannel]
}

// bought waits until a unit can be bought at d, and says how long that took since a moment.
func bought(t *testing.T, d *Desk, since time.Time) {
	t.Helper()
	n := 0
	eventually(t, "open", func() bool {
		n++
		return d.buy(fmt.Sprint("later ", n), "").Code == Held
	})
	t.Logf("open after %v", time.Since(since))
}

func TestUnitThatComesBackThroughOneDeskIsBuyableAtTheOther(t *testing.T) {
	s := redistest.Start(t)
	here, there := across(t, s, time.Hour) // time opens nothing
	eventually(t, "two listen", func() bool { return subscribers(s) == 2 })
	here.Settle(sku, Item{Serial: "won"}, Confirm)
	wants(t, "before", there.buy("loser", ""), SoldOut)
	here.Settle(sku, Item{Serial: "won"}, Refund)
	bought(t, there, time.Now())
}

func TestNewsThatWereMissedAreLookedAfterWhenTheSubscriptionIsBack(t *testing.T) {
	s := redistest.Start(t)
	here, there := across(t, s, time.Hour)
	eventually(t, "two listen", func() bool { return subscribers(s) == 2 })
	wants(t, "before", there.buy("loser", ""), SoldOut)
	// In one transaction the connections are gone and the unit is back, so that nobody hears of it.
	r := here.store.(*Redis)
	_, err := s.Client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
		k := keys(sku)
		args := append([]any{"eval", r.scripts["finish"].text, len(k)}, any(k[0]), k[1], k[2], k[3], k[4])
		p.Do(t.Context(), append(args, 100, 1, 2, "release", 1, "won", "", 0, 0, 0, 0, "", "", newsChannel)...) // as a visitor
		return nil
	})
	check(t, err)
	eventually(t, "whoever comes next looks", func() bool { return there.buy("", "").Code == Held })
}

// restricted starts a Redis with a user who may do all but use channels.
func restricted(t *testing.T) *redistest.Server {
	s := redistest.Start(t)
	check(t, s.Client.Do(t.Context(), "acl", "setuser", "shy", "on", ">secret", "~sluice:*", "resetchannels", "+@all").Err())
	return s
}

func TestWithoutTheChannelTheLatchOpensByItsTime(t *testing.T) {
	s := restricted(t)
	here, there := across(t, s, 50*time.Millisecond, "shy", "secret")
	wants(t, "before", there.buy("loser", ""), SoldOut)
	here.Settle(sku, Item{Serial: "won"}, Release)
	bought(t, there, time.Now())
	want(t, "listeners", subscribers(s), 0)
}

func TestUserWithoutTheChannelRightLosesNoCall(t *testing.T) {
	s := restricted(t)
	o := optionsFor(s, 2)
	o.Username, o.Password = "shy", func() string { return "secret" }
	r := must[*Redis](t)(NewRedis(o))
	t.Cleanup(func() { r.Close() })
	must[Stock](t)(r.SetTotal(t.Context(), "1001", 1, 0))
	want(t, "reserve", take(t, r, "a", "ann"), Held)
	want(t, "release", do(t, r, Release, "a"), Changed)
	want(t, "reserve", take(t, r, "b", "ann"), Held)
	must[Stock](t)(r.SetState(t.Context(), "1001", Paused))
	log, err := s.Client.Do(t.Context(), "acl", "log").Slice()
	check(t, err)
	if len(log) == 0 {
		t.Fatal("nothing was refused: the test says nothing")
	}
}

func TestNewsAreHeardAgainAfterRedisWasAway(t *testing.T) {
	s := redistest.Start(t)
	r := connect(t, s, texts())
	l := listen(t, r)
	s.Kill()
	s.Restart()
	eventually(t, "listening again", func() bool { return l.begins() == 2 })
	eventually(t, "a ledger", func() bool {
		_, err := r.SetTotal(t.Context(), "1001", 5, 0)
		return err == nil
	})
	eventually(t, "news", func() bool { return len(l.heard()) == 1 })
}

func TestSubscriptionToARedisThatHangsIsGivenUp(t *testing.T) {
	s := redistest.Start(t)
	r := connect(t, s, texts())
	l := listen(t, r)
	for range 5 { // what hangs cannot be asked whether it was given up
		s.Pause()
		time.Sleep(3 * newsTimeout)
		s.Resume()
		for range 2_000 {
			if l.begins() > 1 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	t.Error("it never began again")
}

func FuzzNews(f *testing.F) {
	f.Add("5|1|7|on|1001")
	f.Add("-5|1|7|frozen|a|b")
	f.Fuzz(func(t *testing.T, text string) {
		sku, h, err := newsOf(text)
		if err != nil {
			return
		}
		if !strings.HasSuffix(text, "|"+sku) || h.Free > 0 && !strings.Contains(text, fmt.Sprint(h.Free)) {
			t.Errorf("%q became %q, %v", text, sku, h)
		}
	})
}
