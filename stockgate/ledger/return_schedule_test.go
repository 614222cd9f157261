package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// returns plays instances that are killed while Redis restarts, with its tail or without, and that return with their
// journals. Its law is that of relapse: each SKU opens by itself, and says of each order what was said before.
type returns struct {
	relapse
	dirs []string
	run  string // what Redis calls itself
}

func (p *returns) open(i int) *Store {
	o := optionsFor(p.server, 2)
	o.StateDir = p.dirs[i]
	o.Identify = func(context.Context, *redis.Conn) (string, error) { return p.run, nil }
	r := testkit.Must[*Store](p.t)(NewStore(o))
	r.Settle = 0
	r.visits.Wait() // the schedule alone calls from now on
	return r
}

// kill ends an instance as a kill does: nothing is told, and no mark is taken away.
func (p *returns) kill(i int) {
	r := p.stores[i]
	r.depart()
	r.visits.Wait()
	testkit.Check(p.t, r.link.Close())
	testkit.Check(p.t, r.journal.Close(false))
}

// begin has instances that know nothing.
func (p *returns) begin() {
	p.stores, p.dirs = nil, nil
	for i := range 3 {
		p.dirs = append(p.dirs, p.t.TempDir())
		p.stores = append(p.stores, p.open(i))
	}
}

// round plays a SKU until it is lost and open again.
func (p *returns) round() error {
	for range p.IntN(10) {
		if err := p.act(); err != nil {
			return err
		}
	}
	p.keep()
	for range 1 + p.IntN(10) {
		if err := p.act(); err != nil {
			return err
		}
	}
	killed := p.Perm(len(p.stores))[:p.IntN(len(p.stores)+1)]
	for _, i := range killed {
		p.kill(i)
	}
	if p.IntN(3) > 0 { // or nothing is lost
		p.kept.restore(p.t, p.server)
	}
	p.run = fmt.Sprint(p.Int64())
	cut := p.server.Client.ClientKillByFilter(context.Background(), "type", "normal", "skipme", "yes")
	testkit.Check(p.t, cut.Err())
	for _, i := range killed {
		p.stores[i] = p.open(i)
	}
	return p.reconcile()
}

// SLUICE_SCHEDULES says how many schedules to play; 1,000 at night by default, and else 20. SLUICE_SCHEDULES_FROM is the
// first one of them, a multiple of 25: so many can be played in parts.
func TestReturnSchedule_InstancesThatReturnOpenWhatRedisHasLost(t *testing.T) {
	t.Parallel()
	schedules, err := strconv.Atoi(os.Getenv("SLUICE_SCHEDULES"))
	switch {
	case err == nil:
	case nightly():
		schedules = 1_000
	default:
		schedules = 20
	}
	from, _ := strconv.Atoi(os.Getenv("SLUICE_SCHEDULES_FROM"))
	p := returns{run: "0", relapse: relapse{t: t, server: redistest.Start(t)}}
	for n := range uint64(schedules) {
		seed := uint64(from) + n
		if n%25 == 0 { // what instances know grows with each SKU
			for i := range p.stores {
				p.kill(i)
			}
			p.server.Client.FlushAll(t.Context())
			p.begin()
		}
		p.Rand, p.sku = rand.New(rand.NewPCG(seed, 11)), fmt.Sprint("sku ", seed)
		p.orders = map[string]string{}
		if _, err := p.stores[0].SetTotal(t.Context(), p.sku, 40, 0); err != nil {
			t.Fatal(err)
		}
		for round := range 2 {
			if err := p.round(); err != nil {
				t.Fatalf("schedule %d, round %d: %v", seed, round, err)
			}
		}
	}
	for i := range p.stores {
		p.kill(i)
	}
}

// A journal that is not whole vouches for nothing: the SKU waits for the instance that had it.
func TestReturnSchedule_InstanceWithoutItsJournalIsWaitedFor(t *testing.T) {
	for name, spoil := range map[string]func(dir string){
		"deleted": func(dir string) { testkit.Check(t, emptied(dir)) },
		"damaged": func(dir string) { testkit.Check(t, damaged(dir)) },
		"whole":   func(string) {},
	} {
		p := returns{run: "0", relapse: relapse{t: t, server: redistest.Start(t), sku: "1001"}}
		p.begin()
		testkit.Must[Stock](t)(p.stores[0].SetTotal(t.Context(), "1001", 9, 0))
		takes(t, p.stores[0], "a")
		takes(t, p.stores[1], "b")
		p.keep()
		takes(t, p.stores[1], "tail")
		for i := range p.stores {
			p.kill(i)
		}
		spoil(p.dirs[1])
		p.kept.restore(t, p.server)
		p.run = "1"
		for i := range p.stores {
			p.stores[i] = p.open(i)
		}
		for range 5 {
			for _, r := range p.stores {
				testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
				tells(t, r)
			}
		}
		s := stockIn(t, p.stores[0])
		if name == "whole" {
			testkit.Want(t, "opened", s.State, On)
			testkit.Want(t, "tail", statusOf(t, p.stores[0], "tail"), "H")
		} else if s.State == On {
			t.Errorf("%s: it sells, and an order is missing", name)
		}
		for i := range p.stores {
			p.kill(i)
		}
	}
}

func emptied(dir string) error {
	return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700))
}

func damaged(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*", "0*"))
	for _, path := range files {
		text, readErr := os.ReadFile(path)
		if readErr == nil {
			text[len(text)/2] ^= 1
		}
		err = errors.Join(err, readErr, os.WriteFile(path, text, 0o600))
	}
	return err
}
