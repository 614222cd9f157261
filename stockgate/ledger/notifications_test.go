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
	"sluice/internal/testkit"
)

// heardOf is one notification.
type heardOf struct {
	sku  string
	hint StockVersion
}

// listener keeps the news of a store.
type listener struct {
	mu     sync.Mutex
	news   []heardOf
	missed int
}

func (l *listener) heard() []heardOf {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]heardOf(nil), l.news...)
}

func (l *listener) begins() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missed
}

// listen hears the news of s from now until the test ends.
func listen(t testing.TB, s *Store) *listener {
	t.Helper()
	l := &listener{}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		s.Listen(ctx, func(sku string, h StockVersion) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.news = append(l.news, heardOf{sku, h})
		}, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.missed++
		})
	})
	t.Cleanup(func() { cancel(); all.Wait() })
	testkit.Eventually(t, "listening", func() bool { return l.begins() > 0 })
	return l
}

func TestNews_AreToldWhenUnitsComeBackOrTheStateChangesAndOnlyThen(t *testing.T) {
	withUnits(t, func(t *testing.T, s *Store) {
		l := listen(t, s)
		var want []heardOf
		news := func() { want = append(want, heardOf{"1001", stockIn(t, s).StockVersion}) }
		for i := range 5 {
			takeUnit(t, s, fmt.Sprint(i), fmt.Sprint(i))
		}
		takeUnit(t, s, "late", "zoe")
		// a loser
		finishOne(t, s, Release, "0")
		news()
		finishOne(t, s, Release, "0")
		finishOne(t, s, Release, "never heard of")
		finishOne(t, s, Confirm, "1")
		finishOne(t, s, Refund, "1")
		news()
		finishOne(t, s, Adopt, "2")
		finishOne(t, s, Adopt, "unheld")
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 300, 2))
		news()
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 9, 2))
		testkit.Must[Stock](t)(s.SetTotal(t.Context(), "1001", 300, 2))
		news()
		finishOne(t, s, Release, "3") // more than enough are free
		for _, state := range []State{Paused, Paused, On, Frozen,
			On, Ended} {
			before := stockIn(t, s).State
			testkit.Must[Stock](t)(s.SetState(t.Context(), "1001", state))
			if state != before {
				news()
			}
		}
		stock := testkit.Must[Stock](t)(s.SetTotal(t.Context(), "a|b:\x00\xff", 1, 0))
		want = append(want, heardOf{"a|b:\x00\xff", stock.StockVersion})
		testkit.Eventually(t, "the last news", func() bool { return len(l.heard()) >= len(want) })
		if err := differ("news", fmt.Sprint(l.heard()), fmt.Sprint(want)); err != nil {
			t.Fatal(err)
		}
	})
}

// across are two reservers, each with connections of its own, on one Redis with one unit. The first one's "winner"
// holds it.
func across(t *testing.T, s *redistest.Server, memory time.Duration, user ...string) (here, there *Reserver) {
	t.Helper()
	o := testOptions()
	o.SoldOutMemory = memory
	options := optionsFor(s, 8)
	if len(user) > 0 {
		options.Username, options.Password = user[0], func() string { return user[1] }
	}
	var reservers [2]*Reserver
	for i := range reservers {
		r := testkit.Must[*Store](t)(NewStore(options))
		t.Cleanup(func() { r.Close() })
		if i == 0 {
			testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 1, 0))
		}
		reservers[i] = opened(t, o, r, nil)
	}
	wants(t, "winner", reservers[0].buy("winner", "won"), Held)
	return reservers[0], reservers[1]
}

// subscribers is how many listen at s.
func subscribers(s *redistest.Server) int64 {
	return s.Client.PubSubNumSub(context.Background(), shopNews).Val()[shopNews]
}

// bought waits until a unit can be bought at d.
func bought(t *testing.T, d *Reserver) {
	t.Helper()
	n := 0
	testkit.Eventually(t, "open", func() bool {
		n++
		return d.buy(fmt.Sprint("later ", n), "").Code == Held
	})
}

func TestNews_ThatWereMissedAreLookedAfterWhenTheSubscriptionIsBack(t *testing.T) {
	s := redistest.Start(t)
	here, there := across(t, s, time.Hour)
	testkit.Eventually(t, "two listen", func() bool { return subscribers(s) == 2 })
	wants(t, "before", there.buy("loser", ""), Undecided)
	// In one transaction the connections are gone and the unit is back, so that nobody hears of it.
	r := here.store.(*Store)
	_, err := s.Client.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
		k := keys(testSKU)
		args := append([]any{"eval", r.scripts["finish"].text, len(k)}, any(k[0]), k[1], k[2], k[3], k[4])
		p.Do(
			t.Context(),
			append(args, 100, 1, 2, "release", 1, "won", "", 0, 0, 0, 0, 0, "", "", shopNews)...) // as a visitor
		return nil
	})
	testkit.Check(t, err)
	testkit.Eventually(t, "the next one looks", func() bool { return there.buy("", "").Code == Held })
}

// restricted starts a Redis with a user who may do all but use channels.
func restricted(t *testing.T) *redistest.Server {
	s := redistest.Start(t)
	testkit.Check(
		t,
		s.Client.Do(t.Context(), "acl", "setuser", "shy", "on", ">secret", "~sluice:*", "resetchannels", "+@all").Err(),
	)
	return s
}

func TestNotifications_WithoutTheChannelTheCacheExpires(t *testing.T) {
	s := restricted(t)
	here, there := across(t, s, 50*time.Millisecond, "shy", "secret")
	wants(t, "before", there.buy("loser", ""), Undecided)
	here.Settle(testSKU, "won", Release)
	bought(t, there)
	testkit.Want(t, "listeners", subscribers(s), 0)
}

func TestNews_UserWithoutTheChannelRightLosesNoCall(t *testing.T) {
	s := restricted(t)
	o := optionsFor(s, 2)
	o.Username, o.Password = "shy", func() string { return "secret" }
	r := testkit.Must[*Store](t)(NewStore(o))
	t.Cleanup(func() { r.Close() })
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), "1001", 1, 0))
	testkit.Want(t, "reserve", takeUnit(t, r, "a", "ann"), Held)
	testkit.Want(t, "release", finishOne(t, r, Release, "a"), Changed)
	testkit.Want(t, "reserve", takeUnit(t, r, "b", "ann"), Held)
	testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", Paused))
	log, err := s.Client.Do(t.Context(), "acl", "log").Slice()
	testkit.Check(t, err)
	if len(log) == 0 {
		t.Fatal("nothing was refused: the test says nothing")
	}
}

func TestNews_AreHeardAgainAfterRedisWasAway(t *testing.T) {
	s := redistest.Start(t)
	r := connect(t, s, texts())
	l := listen(t, r)
	before := l.begins()
	s.Kill()
	s.Restart()
	testkit.Eventually(t, "listening again", func() bool { return l.begins() > before })
	testkit.Eventually(t, "a ledger", func() bool {
		_, err := r.SetTotal(t.Context(), "1001", 5, 0)
		return err == nil
	})
	testkit.Eventually(t, "news", func() bool { return len(l.heard()) == 1 })
}

func TestNews_SubscriptionToARedisThatHangsIsGivenUp(t *testing.T) {
	s := redistest.Start(t)
	r := connect(t, s, texts())
	l := listen(t, r)
	testkit.Eventually(t, "the subscription begins again", func() bool {
		s.Pause()
		time.Sleep(3 * subscriptionTimeout) // a server that hangs does not say whether it was given up
		s.Resume()
		for end := time.Now().Add(2 * time.Second); l.begins() < 2 && time.Now().Before(end); {
			time.Sleep(time.Millisecond) // the subscription may have survived the pause on a busy machine
		}
		return l.begins() > 1
	})
}

func FuzzNews(f *testing.F) {
	f.Add("5|1|7|on|1001")
	f.Add("-5|1|7|frozen|a|b")
	f.Fuzz(func(t *testing.T, text string) {
		sku, h, err := decodeNotification(text)
		if err != nil {
			return
		}
		if !strings.HasSuffix(text, "|"+sku) || h.Free > 0 && !strings.Contains(text, fmt.Sprint(h.Free)) {
			t.Errorf("%q became %q, %v", text, sku, h)
		}
	})
}
