package redisstore

import (
	"fmt"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/ledger/failover"
	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// recordOf is a record as the ledger has it, of one unit of ann.
func recordOf(s protocol.Said) string {
	units, time := "1", 9
	if s.Epoch > 0 {
		units = fmt.Sprintf("1/?%d-%d", s.Epoch, s.Ver)
	}
	if s.Status == protocol.StatusSold {
		time = 0
	}
	return fmt.Sprintf("%c|%s|%d|ann", s.Status, units, time)
}

// merges plays a case of protocol.Merge in a frozen ledger, or in an open one, and returns the record that comes of it.
func merges(t *testing.T, server *redistest.Server, r *Store, sku string, there, told protocol.Said, open bool) (protocol.Stock, string) {
	t.Helper()
	ledgertest.Must[protocol.Stock](t)(r.SetTotal(t.Context(), sku, 9, 0))
	if !open {
		ledgertest.Must[protocol.Stock](t)(r.SetState(t.Context(), sku, protocol.Frozen))
	}
	key := keys(sku)
	client := server.Client
	client.HSet(t.Context(), key[0], "upto", "5|5")
	if there.Status != protocol.StatusNone {
		client.HSet(t.Context(), key[1], "s", recordOf(there))
		held, sold := 0, 0
		switch there.Status {
		case protocol.StatusHeld:
			held = 1
		case protocol.StatusSold:
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
	s := ledgertest.Must[failover.Result](t)(r.recover(t.Context(), sku, []any{1, 9, 0, 0, 1, "s", "ann", "1", word, 9,
		int64(protocol.MaxNumber), told.Epoch, told.Ver}))
	return s.Stock, client.HGet(t.Context(), key[1], "s").Val()
}

func TestMerge_LedgerHasTheSameCases(t *testing.T) {
	server, r := onRedis(t)
	for i, c := range ledgertest.MergeCases() {
		s, record := merges(t, server, r, fmt.Sprint("merge ", i), c.There, c.Told, false)
		want := recordOf(c.Then)
		if c.Then.Status == protocol.StatusSold && !c.Then.Adopted {
			record = strings.Replace(record, "C|1/?0-0|", "C|1|", 1)
		}
		what := fmt.Sprintf("%s is told %s", recordOf(c.There), recordOf(c.Told))
		ledgertest.Want(t, what, record, want)
		held, sold := int64(0), int64(0)
		switch c.Then.Status {
		case protocol.StatusHeld:
			held = 1
		case protocol.StatusSold:
			sold = 1
		}
		ledgertest.Want(t, what+": held", s.Held, held)
		ledgertest.Want(t, what+": sold", s.Sold, sold)
	}
}

// A record of before the ledger froze has no version: it is of 5|5 at the latest. In an open ledger it may be of now.
func TestMerge_RecordWithoutAVersionIsOfTheFreezeAtTheLatest(t *testing.T) {
	server, r := onRedis(t)
	for i, c := range []struct {
		epoch, ver int64
		open       bool
		then       string
	}{
		{5, 6, false, "C"}, {6, 1, false, "C"}, {5, 5, false, "R"}, {4, 9, false, "R"}, {5, 6, true, "R"}, {6, 1, true, "R"},
	} {
		told := protocol.Said{Status: protocol.StatusSold, Adopted: true, Epoch: c.epoch, Ver: c.ver}
		_, record := merges(t, server, r, fmt.Sprint("undated ", i), protocol.Said{Status: protocol.StatusRefunded}, told, c.open)
		ledgertest.Want(t, fmt.Sprintf("refunded, and adopted in %d|%d, open %v", c.epoch, c.ver, c.open), record[:1], c.then)
	}
}

// A give-back that an instance tells late frees the unit of a sold order, also when the SKU is open again; not that of
// an order that was adopted since.
func TestMerge_LateGiveBackFreesTheUnitOfASoldOrderAlone(t *testing.T) {
	server, r := onRedis(t)
	late := protocol.Said{Status: protocol.StatusRefunded, Epoch: 5, Ver: 9}
	s, record := merges(t, server, r, "sold", protocol.Said{Status: protocol.StatusSold}, late, true)
	ledgertest.Want(t, "sold", record[:1], "R")
	ledgertest.Want(t, "units sold", s.Sold, 0)
	adopted := protocol.Said{Status: protocol.StatusSold, Adopted: true, Epoch: 6, Ver: 1}
	s, record = merges(t, server, r, "adopted", adopted, late, true)
	ledgertest.Want(t, "adopted since", record[:1], "C")
	ledgertest.Want(t, "units sold", s.Sold, 1)
}
