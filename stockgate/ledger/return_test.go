package ledger

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// All instances are killed, and Redis restarts without its tail. Instances that return with their journals open the SKU
// by themselves, and the ledger has each order again. Without a journal of one of them the SKU stays closed.
func TestReturn_InstancesThatWereKilledOpenWhatRedisHasLost(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string) error{
		"emptied": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)) },
		"damaged": damagedJournal,
		"whole":   func(string) error { return nil },
	} {
		server, run := redistest.Start(t), "0" // what Redis calls itself
		dirs, stores := []string{t.TempDir(), t.TempDir()}, make([]*Store, 2)
		open := func() {
			for i, dir := range dirs {
				o := optionsFor(server, 2)
				o.StateDir = dir
				o.Identify = func(context.Context, *redis.Conn) (string, error) { return run, nil }
				stores[i] = testkit.Must[*Store](t)(NewStore(o))
				stores[i].Settle = 0
				stores[i].visits.Wait() // the test alone calls from now on
			}
		}
		kill := func() { // nothing is told, and no mark is taken away
			for _, r := range stores {
				r.depart()
				r.visits.Wait()
				testkit.Check(t, r.link.Close())
				testkit.Check(t, r.journal.Close(false))
			}
		}
		open()
		testkit.Must[Stock](t)(stores[0].SetTotal(t.Context(), "1001", 9, 0))
		takes(t, stores[0], "a")
		takes(t, stores[1], "b")
		kept := snapshotOf(t, server, "1001")
		takes(t, stores[1], "tail")
		kill()
		testkit.Check(t, spoil(dirs[1]))
		kept.restore(t, server)
		run = "1"
		open()
		for range 5 {
			for _, r := range stores {
				testkit.Must[[]Record](t)(r.Sweep(t.Context(), "1001", 1, 2, 1))
				tells(t, r)
			}
		}
		s := stockIn(t, stores[0])
		if name == "whole" {
			testkit.Want(t, "opened", s.State, On)
			testkit.Want(t, "tail", statusOf(t, stores[0], "tail"), "H")
		} else if s.State == On {
			t.Errorf("%s: it sells, and an order is missing", name)
		}
		kill()
	}
}

func damagedJournal(dir string) error {
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
