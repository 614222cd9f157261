package ledger

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// recordOf is a record as the ledger has it, of one unit of ann.
func recordOf(s Said) string {
	units, time := "1", 9
	if s.Epoch > 0 {
		units = fmt.Sprintf("1/?%d-%d", s.Epoch, s.Ver)
	}
	if s.Status == StatusSold {
		time = 0
	}
	return fmt.Sprintf("%c|%s|%d|ann", s.Status, units, time)
}

// merges plays a case of Merge in a frozen ledger, or in an open one, and returns the record that comes of it.
func merges(t *testing.T, server *redistest.Server, r *Store, sku string, there, told Said, open bool) (Stock, string) {
	t.Helper()
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), sku, 9, 0))
	if !open {
		testkit.Must[Stock](t)(r.SetState(t.Context(), sku, Frozen))
	}
	key := keys(sku)
	client := server.Client
	client.HSet(t.Context(), key[0], "upto", "5|5")
	if there.Status != StatusNone {
		client.HSet(t.Context(), key[1], "s", recordOf(there))
		held, sold := 0, 0
		switch there.Status {
		case StatusHeld:
			held = 1
		case StatusSold:
			sold = 1
		}
		client.HSet(t.Context(), key[0], "held", held, "sold", sold)
		if held+sold > 0 {
			client.HSet(t.Context(), key[2], "ann", 1)
		}
		client.Do(t.Context(), "ZADD", key[3], 9, "s")
	}
	word := string(rune(told.Status))
	if told.Adopted {
		word = "A"
	}
	s := testkit.Must[Result](t)(r.recover(t.Context(), sku, nil, []any{1, 9, 0, 0, 0, 1, "s", "ann", "1", word, 9,
		int64(MaxNumber), told.Epoch, told.Ver}))
	return s.Stock, client.HGet(t.Context(), key[1], "s").Val()
}

func TestMerge_LedgerHasTheSameCases(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	for i, c := range mergeCases() {
		s, record := merges(t, server, r, fmt.Sprint("merge ", i), c.There, c.Told, false)
		want := recordOf(c.Then)
		if c.Then.Status == StatusSold && !c.Then.Adopted {
			record = strings.Replace(record, "C|1/?0-0|", "C|1|", 1)
		}
		what := fmt.Sprintf("%s is told %s", recordOf(c.There), recordOf(c.Told))
		testkit.Want(t, what, record, want)
		held, sold := int64(0), int64(0)
		switch c.Then.Status {
		case StatusHeld:
			held = 1
		case StatusSold:
			sold = 1
		}
		testkit.Want(t, what+": held", s.Held, held)
		testkit.Want(t, what+": sold", s.Sold, sold)
	}
}

// A record of before the ledger froze has no version: it is of 5|5 at the latest. In an open ledger it may be of now.
func TestMerge_RecordWithoutAVersionIsOfTheFreezeAtTheLatest(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	for i, c := range []struct {
		epoch, ver int64
		open       bool
		then       string
	}{
		{5, 6, false, "C"}, {6, 1, false, "C"}, {5, 5, false, "R"}, {4, 9, false, "R"}, {5, 6, true, "R"}, {6, 1, true, "R"},
	} {
		told := Said{Status: StatusSold, Adopted: true, Epoch: c.epoch, Ver: c.ver}
		_, record := merges(t, server, r, fmt.Sprint("undated ", i), Said{Status: StatusRefunded}, told, c.open)
		testkit.Want(t, fmt.Sprintf("refunded, and adopted in %d|%d, open %v", c.epoch, c.ver, c.open), record[:1], c.then)
	}
}

// A give-back that an instance tells late frees the unit of a sold order, also when the SKU is open again; not that of
// an order that was adopted since.
func TestMerge_LateGiveBackFreesTheUnitOfASoldOrderAlone(t *testing.T) {
	t.Parallel()
	server, r := onRedis(t)
	late := Said{Status: StatusRefunded, Epoch: 5, Ver: 9}
	s, record := merges(t, server, r, "sold", Said{Status: StatusSold}, late, true)
	testkit.Want(t, "sold", record[:1], "R")
	testkit.Want(t, "units sold", s.Sold, 0)
	adopted := Said{Status: StatusSold, Adopted: true, Epoch: 6, Ver: 1}
	s, record = merges(t, server, r, "adopted", adopted, late, true)
	testkit.Want(t, "adopted since", record[:1], "C")
	testkit.Want(t, "units sold", s.Sold, 1)
}
