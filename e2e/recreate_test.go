package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/redistest"
)

// remedy is the command that a message names.
var remedy = regexp.MustCompile(`sluice (stock recover 1001 --total N --from FILE\|settle\|none --apply)`)

// follow runs the command that a message names, in the test's place of an operator.
func follow(t *testing.T, message, config string, units int, adopt string) said {
	t.Helper()
	found := remedy.FindStringSubmatch(message)
	if found == nil {
		t.Fatalf("no way out is named: %s", message)
	}
	filled := strings.NewReplacer(" N ", " "+strconv.Itoa(units)+" ", "FILE|settle|none", adopt)
	words := strings.Fields(filled.Replace(found[1]))
	return run(t, "", append(words, "--config", config)...)
}

// export writes the shop's orders to a file, as a shop would.
func (s *bookshop) export(t *testing.T) (path string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "serial,user,quantity\n"
	for serial, user := range s.orders {
		text += fmt.Sprintf("%s,%s,1\n", serial, user)
	}
	path = filepath.Join(t.TempDir(), "orders.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A ledger vanishes, whole or in part, before a gate that lives, or that was killed and returns with its state folder.
// Each command names one way, and the test knows no other.
func TestRecreate_VanishedLedgerSellsNoUnitTwice(t *testing.T) {
	t.Parallel()
	const units, shoppers = 40, 60
	for name, vanish := range map[string]func(r *redistest.Server, g *running) *running{
		"flushed": func(r *redistest.Server, g *running) *running {
			r.Client.FlushAll(t.Context())
			return g
		},
		"restarted without data":   func(r *redistest.Server, g *running) *running { r.Kill(); r.Restart(); return g },
		"numbers deleted":          deletes("s"),
		"records deleted":          deletes("r"),
		"deadlines and users gone": deletes("u", "x"),
		"flushed, and the gate killed": func(r *redistest.Server, g *running) *running {
			g.die()
			r.Client.FlushAll(t.Context())
			return g.again(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, shop := redistest.Start(t), book(t, nil)
			state := "server.state_dir = " + strconv.Quote(t.TempDir())
			addresses, front := fixed(t)
			g := reserves(t, r, units, addresses, state, shop.setting(), `stock.reserve.reservation_ttl = "1s"`)
			_, end := shopping(units/2, 4, 1, []string{front})
			end()
			if shop.booked() != units/2 {
				t.Fatalf("%d orders at the shop, want %d", shop.booked(), units/2)
			}
			g = vanish(r, g)
			soon(t, "the gate notices what is gone", func() bool {
				return r.Client.ZScore(t.Context(), "sluice:shop:skus", "1001").Err() == nil
			})
			s := run(t, "", "stock", "set", "--config", g.file, "1001", strconv.Itoa(units))
			if s.code == 0 {
				t.Fatal("stock set made a ledger without the orders of before")
			}
			if s := follow(t, s.complaint, g.file, units, shop.export(t)); s.code != 0 {
				t.Fatalf("exit code %d: %s", s.code, s.complaint)
			}
			_, end = shopping(shoppers, 4, 1, []string{front})
			end()
			soon(t, "all is sold and decided", func() bool {
				a := ledgerOf(t, r, "1001")
				return a.held == 0 && a.sold == units
			})
			if shop.booked() != units {
				t.Errorf("%d orders at the shop for %d units", shop.booked(), units)
			}
			shop.audit(t)
		})
	}
}

func deletes(parts ...string) func(r *redistest.Server, g *running) *running {
	return func(r *redistest.Server, g *running) *running {
		for _, part := range parts {
			r.Client.Del(g.t.Context(), "sluice:shop:{1001}:"+part)
		}
		return g
	}
}
