package ledger

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Looks that are shared, late or lost tell no winner that all is sold out, and let nobody forget a SKU that has units again.
func TestNoWinnerOfManySKUsHearsThatAllIsSoldOutWhateverLooksComeTo(t *testing.T) {
	const skus, buyers, steps = 12, 120, 60
	told := map[Code]int{}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			at(t, func(t *testing.T) {
				var mu sync.Mutex
				r := rand.New(rand.NewPCG(seed, 7))
				upTo := func(n int) int { mu.Lock(); defer mu.Unlock(); return r.IntN(n) }
				s := newShelf()
				for i := range skus {
					s.put(fmt.Sprint("many-", i), 4, 0)
				}
				s.set(func(op string, after bool) error {
					time.Sleep(time.Duration(upTo(15)) * time.Millisecond)
					if upTo(12) == 0 && op != "finish" {
						return errLost
					}
					return nil
				})
				o := deskOptions()
				o.PerUser = 1
				var desks []*Desk
				for range 3 {
					desks = append(desks, opened(t, o, s, nil))
				}
				type order struct {
					sku  int
					name string
				}
				won := map[order]time.Time{}
				storm(buyers, buyers, func(i int) {
					name, key := fmt.Sprint("u", i), ""
					for range steps {
						time.Sleep(time.Duration(upTo(400)) * time.Millisecond)
						of, d := order{upTo(skus), name}, desks[upTo(len(desks))]
						if i%2 == 0 {
							key = fmt.Sprintf("%s-%d", name, of.sku)
						}
						mu.Lock()
						since, has := won[of]
						mu.Unlock()
						old := has && time.Since(since) > 2*time.Second
						ask := attempt(name, key)
						ask.SKU = fmt.Append(nil, "many-", of.sku)
						out := d.Reserve(d.o.Now(), ask)
						switch {
						case out.Code == Held && upTo(3) == 0 && i%2 == 1:
							d.Settle(string(ask.SKU), Item{Serial: out.Serial}, Release)
						case out.Code == Held:
							mu.Lock()
							if has {
								t.Errorf("%v holds twice", of)
							}
							won[of] = time.Now()
							mu.Unlock()
							if upTo(2) == 0 {
								d.Settle(string(ask.SKU), Item{Serial: out.Serial}, Confirm)
							}
						case old:
							mu.Lock()
							told[out.Code]++
							mu.Unlock()
							if out.Code == SoldOut || out.Code == Released {
								t.Errorf("%v, won since %v, heard %v", of, time.Since(since), out)
							}
						}
					}
				})
				s.set(nil)
				time.Sleep(3 * time.Second)
				restocked(t, s, desks, skus, "many-", func(int, string) {})
				synctest.Wait()
			})
		})
	}
	t.Logf("%v", told)
}

// restocked adds a unit for each desk to each SKU, named prefix and a number, and reports a desk that has none for a newcomer; held hears who
// got one.
func restocked(t *testing.T, s Store, desks []*Desk, skus int, prefix string, held func(sku int, user string)) {
	t.Helper()
	for i := range skus {
		must[Stock](t)(s.Add(t.Context(), fmt.Sprint(prefix, i), int64(len(desks)), ""))
	}
	for n, d := range desks {
		user := fmt.Sprint("late-", n)
		for i := range skus {
			time.Sleep(1100 * time.Millisecond)
			ask := attempt(user, "")
			ask.SKU = fmt.Append(nil, prefix, i)
			if out := d.Reserve(d.o.Now(), ask); out.Code != Held {
				t.Errorf("of new units of SKU %d at desk %d: %v", i, n, out)
			}
			held(i, user)
		}
	}
}
