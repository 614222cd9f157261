package failover

import (
	"fmt"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// notes are what a journal says of 1001, by serial.
func notes(j *OperationLog) map[string]string {
	all, _ := j.entriesOf("1001", func(*entry) bool { return true })
	said := map[string]string{}
	for i := range all {
		said[all[i].item.Serial] = all[i].word()
	}
	return said
}

func TestOperationLog_JournalSaysWhatItsInstanceWasTold(t *testing.T) {
	for ops, want := range map[string]string{
		"held": "H", "held confirm": "C", "held release": "X", "held confirm refund": "R", "held refund": "R",
		"held confirm release": "C", "held release confirm": "X", "held release adopt": "A", "held adopt refund": "R",
		"confirm": "c", "release": "x", "refund": "r", "confirm refund": "r", "adopt": "A", "confirm adopt": "A",
		"replay": "H", "held confirm replay": "C", "held confirm taken": "X",
		"refund taken": "x", "refund release taken": "r", "release bought": "c",
		// What another instance did between shows by the answer.
		"held confirm release done": "X", "release refund done": "r", "held release confirm done": "A",
	} {
		j := NewOperationLog(4)
		items := []protocol.Item{{Serial: "s", User: "ann", Quantity: 2}}
		var word string
		var op protocol.Op
		for rest := ops; rest != ""; {
			if n, _ := fmt.Sscan(rest, &word); n == 0 {
				break
			}
			rest = rest[min(len(rest), len(word)+1):]
			switch word {
			case "held":
				j.Reserved("1001", Answer{Epoch: 1}, 9, items, []protocol.Code{protocol.Held})
			case "replay":
				j.Reserved("1001", Answer{Epoch: 1}, 9, items, []protocol.Code{protocol.ReplayHeld})
			case "taken":
				j.Corrects("1001", Answer{}, false, op, items, []protocol.Done{protocol.WasReleased})
			case "done":
				j.Corrects("1001", Answer{Epoch: 1, Ver: 2}, false, op, items, []protocol.Done{protocol.Already})
			case "bought":
				j.Corrects("1001", Answer{}, false, op, items, []protocol.Done{protocol.WasSold})
			default:
				op = protocol.Op(word)
				j.Intends("1001", 1, op, items)
			}
		}
		if got := notes(j)["s"]; got != want {
			t.Errorf("%s: %q, want %q", ops, got, want)
		}
	}
}

func TestOperationLog_JournalForgetsTheOldestAndSaysSo(t *testing.T) {
	j := NewOperationLog(3)
	for i := range 5 {
		j.Reserved(
			"1001",
			Answer{Epoch: 1},
			9,
			[]protocol.Item{{Serial: fmt.Sprint(i), User: "", Quantity: 1}},
			[]protocol.Code{protocol.Held},
		)
	}
	j.Reserved(
		"another",
		Answer{Epoch: 1},
		9,
		[]protocol.Item{{Serial: "x", User: "", Quantity: 1}, {Serial: "lost", User: "", Quantity: 1}},
		[]protocol.Code{protocol.Held, protocol.SoldOut},
	)
	ledgertest.Want(t, "notes", fmt.Sprint(notes(j)), "map[3:H 4:H]")
	ledgertest.Want(t, "since now", j.reachesBack(j.ring[0].made), false)
	ledgertest.Want(t, "since later", j.reachesBack(j.ring[0].made+clocksDiffer+1), true)
	ledgertest.Want(t, "SKUs", len(j.places), 2)
}

func TestOperationLog_OmitsRejections(t *testing.T) {
	j := NewOperationLog(3)
	items, codes := []protocol.Item{{Serial: "a", User: "", Quantity: 1}}, []protocol.Code{protocol.SoldOut}
	n := testing.AllocsPerRun(100, func() { j.Reserved("1001", Answer{Epoch: 1}, 9, items, codes) })
	if n != 0 || len(j.ring) != 0 {
		t.Errorf("%v allocations, %d entries", n, len(j.ring))
	}
}

func BenchmarkJournalOfWinners(b *testing.B) {
	j := NewOperationLog(1 << 12)
	items, codes := make([]protocol.Item, 256), make([]protocol.Code, 256)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range items {
			items[i], codes[i] = protocol.Item{Serial: fmt.Sprint(n, "-", i), User: "ann", Quantity: 1}, protocol.Held
		}
		j.Reserved("1001", Answer{Epoch: 1}, 9, items, codes)
	}
}

// A fail-over took a refund away, and the ledger takes a confirmation by the resolver before it was told.
func TestOperationLog_GiveBackOutlivesAConfirmationOfALedgerThatIsToBeTold(t *testing.T) {
	items := []protocol.Item{{Serial: "s", User: "ann", Quantity: 2}}
	for untold, want := range map[bool]string{true: "r", false: "a"} {
		for _, done := range []protocol.Done{protocol.Changed, protocol.Already} {
			j := NewOperationLog(4)
			j.Intends("1001", 1, protocol.Refund, items)
			j.Corrects("1001", Answer{Epoch: 1, Ver: 2}, false, protocol.Refund, items, []protocol.Done{protocol.Changed})
			j.Intends("1001", 2, protocol.Confirm, items)
			j.Corrects("1001", Answer{Epoch: 2, Ver: 3}, untold, protocol.Confirm, items, []protocol.Done{done})
			ledgertest.Want(t, fmt.Sprint("untold ", untold, ", ", done), notes(j)["s"], want)
		}
	}
}
