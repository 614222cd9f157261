package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// archived plays the end of a sale, and what an instance tells of it later.
func archived(t *testing.T, server *redistest.Server, texts map[string]string, sku string) error {
	ctx := t.Context()
	r := connect(t, server, texts)
	item := func(serial string) []Item { return []Item{{Serial: serial, User: "u", Quantity: 1}} }
	var errs []error
	var now Stock
	look := func() {
		var err error
		now, _, err = r.ReadStock(ctx, sku)
		errs = append(errs, err)
	}
	note := func(_ any, err error) { errs = append(errs, err) }
	rejects := func(why string, epoch, ver int64) {
		if err := r.Archive(ctx, sku, epoch, ver); err == nil || !strings.Contains(err.Error(), why) {
			errs = append(errs, fmt.Errorf("%v: want %q", err, why))
		}
	}
	note(r.SetTotal(ctx, sku, 10, 0))
	note(r.Reserve(ctx, sku, 0, 1, 2, append(item("a"), item("b")...), make([]Code, 2)))
	note(r.Finish(ctx, sku, 1, 2, Confirm, item("a"), make([]Done, 1)))
	look()
	rejects("not over", now.Epoch, now.Ver)
	note(r.SetState(ctx, sku, Ended))
	look()
	rejects("undecided", now.Epoch, now.Ver)
	note(r.Finish(ctx, sku, 1, 2, Release, item("b"), make([]Done, 1)))
	rejects("has changed", now.Epoch, now.Ver)
	look()
	rejects("has changed", now.Epoch+1, now.Ver)
	for range 2 {
		errs = append(errs, r.Archive(ctx, sku, now.Epoch, now.Ver))
	}
	before := now
	look()
	errs = append(errs, differ("after",
		fmt.Sprint(now.State, now.Total, now.Held, now.Sold, now.Epoch, now.Ver),
		fmt.Sprint(Ended, 0, 0, 0, before.Epoch+1, before.Ver+1)))
	k := keys(sku)
	errs = append(errs, differ("keys of orders", server.Client.Exists(ctx, k[1], k[2], k[3]).Val(), 0))
	// An instance tells what it knows of before, and an order of the sale after.
	note(r.SetTotal(ctx, sku, 5, 0))
	note(r.SetState(ctx, sku, Frozen))
	for serial, epoch := range map[string]int64{"a": before.Epoch, "c": now.Epoch} {
		note(r.recover(ctx, sku, nil, []any{1, 2, 0, 0, 0, 1, serial, "u", 1, "C", 0, epoch, epoch, 1}))
	}
	look()
	errs = append(errs, differ("sold by what was told", now.Sold, 1))
	return errors.Join(errs...)
}

func TestArchive_ForgetsTheOrdersOfASaleThatIsOver(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	testkit.Check(t, archived(t, server, texts(), "as it is"))
	for name, m := range map[string]mutant{
		"another position": {"archive",
			"stock.epoch ~= tonumber(ARGV[2]) or stock.ver ~= tonumber(ARGV[3])", "false"},
		"another epoch":            {"archive", "stock.epoch ~= tonumber(ARGV[2]) or", ""},
		"on sale":                  {"archive", "stock.state ~= 'ended' and not closed", "false"},
		"undecided orders":         {"archive", "if stock.held > 0 then", "if false then"},
		"a second time":            {"archive", "redis.call('HEXISTS', S, 'archived') == 1", "false"},
		"users stay":               {"archive", "'UNLINK', R, U, X", "'UNLINK', R, X"},
		"instances bring it back":  {"recover", "tonumber(arg(5, i)) < first", "tonumber(arg(5, i)) < stock.born"},
		"the epoch stays":          {"archive", "= stock.epoch + 1, 'ended'", "= stock.epoch, 'ended'"},
		"the units stay":           {"archive", "'ended', 0, 0", "'ended', stock.total, 0"},
		"an order of after is old": {"recover", "tonumber(arg(5, i)) < first", "tonumber(arg(5, i)) <= first"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := archived(t, server, m.apply(t), name); err == nil {
				t.Error("not noticed")
			}
		})
	}
}
