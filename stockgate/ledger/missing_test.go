package ledger

import (
	"errors"
	"testing"

	"sluice/internal/testkit"
)

// missing looks one order up, of the queue or not, and fails where it is found.
func missing(t *testing.T, r *Store, sku string) error {
	t.Helper()
	f := r.FindAll(t.Context(), []OrderName{{SKU: sku, Serial: "tail"}})[0]
	if f.OK {
		t.Fatalf("%s has it: %+v", sku, f)
	}
	places, err := r.Positions(t.Context(), sku, []string{"tail"})
	testkit.Check(t, err)
	if (places[0].Err == nil) != (f.Err == nil) {
		t.Errorf("in the queue: %v, else: %v", places[0].Err, f.Err)
	}
	return f.Err
}

// A server that took over without the last writes does not say that there is no such order, and not how many units
// users have: whether the SKU was on sale or not.
func TestMissing_ServerThatLostItsTailDoesNotTell(t *testing.T) {
	t.Parallel()
	for _, state := range []State{On, Paused, Ended} {
		t.Run(string(state), func(t *testing.T) {
			p := newPair(t)
			x := exchangeTo(t, p.master)
			a, b := p.through(x), p.through(x)
			testkit.Must[Stock](t)(a.SetTotal(t.Context(), "1001", 9, 0))
			takes(t, a, "a")
			takes(t, b, "b")
			testkit.Must[Stock](t)(a.SetState(t.Context(), "1001", state))
			testkit.Must[Stock](t)(b.SetState(t.Context(), "1001", state))
			p.cut()
			items := []Item{{Serial: "tail", User: "tail", Quantity: 1}}
			_, err := a.Finish(t.Context(), "1001", 1, 9, Adopt, items, make([]Done, 1))
			testkit.Check(t, err)
			x.turn(p.replica.Addr)
			testkit.Eventually(t, "the new server is asked", func() bool {
				owned := b.UnitsOf(t.Context(), []string{"1001"}, []string{"tail"})[0]
				if owned.Err == nil && owned.State == state {
					t.Fatalf("it tells %+v", owned)
				}
				return owned.Err == nil
			})
			if err := missing(t, b, "1001"); err == nil {
				t.Error("it says that there is no such order")
			}
		})
	}
}

// An instance that has never seen the ledger knows by the registry that there was one.
func TestMissing_LedgerThatIsGoneDoesNotTell(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	testkit.Want(t, "before", missing(t, r, "1001"), nil)
	testkit.Want(t, "of another SKU", missing(t, r, "never"), nil)
	testkit.Check(t, server.Client.Del(t.Context(), keys("1001")...).Err())
	late := connect(t, server, texts())
	for _, s := range []*Store{r, late} {
		if err := missing(t, s, "1001"); !errors.Is(err, ErrLost) {
			t.Errorf("%v, want that the ledger is lost", err)
		}
		owned := s.UnitsOf(t.Context(), []string{"never", "1001"}, []string{"ann"})
		testkit.Want(t, "units", owned[1].State, Lost)
		testkit.Want(t, "of another SKU", owned[0].State, State(""))
		testkit.Want(t, "of another SKU", missing(t, s, "never"), nil)
	}
}

func TestMissing_FrozenLedgerTellsWhatItHas(t *testing.T) {
	t.Parallel()
	_, r := onRedis(t)
	testkit.Must[Stock](t)(r.SetState(t.Context(), "1001", Frozen))
	found := r.FindAll(t.Context(), []OrderName{{SKU: "1001", Serial: "none"}, {SKU: "1001", Serial: "b"}})
	if found[0].Err == nil || found[1].Err != nil || found[1].Record.Status != StatusSold {
		t.Errorf("%+v", found)
	}
}

// A service may hide which server answers. What an instance has seen tells then.
func TestMissing_LedgerThatIsOlderThanBeforeDoesNotTell(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	back := server.Client.HGetAll(t.Context(), hashOf1001).Val()
	takeUnit(t, r, "tail", "eve")
	testkit.Check(t, server.Client.HSet(t.Context(), hashOf1001, back).Err())
	testkit.Check(t, server.Client.HDel(t.Context(), keys("1001")[1], "tail").Err())
	if err := missing(t, r, "1001"); err == nil {
		t.Error("it says that there is no such order")
	}
	testkit.Want(t, "units", r.UnitsOf(t.Context(), []string{"1001"}, []string{"eve"})[0].State, Verifying)
}
