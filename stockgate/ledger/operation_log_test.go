package ledger

import (
	"fmt"
	"testing"

	"sluice/internal/testkit"
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
		"refund taken": "x", "release bought": "c", "held confirm refund confirm back": "R", "confirm back": "r",
		// What another instance did between shows by the answer.
		"held confirm release done": "X", "release refund done": "r", "held release confirm done": "A",
	} {
		j := newOperationLog(4)
		items := []Item{{Serial: "s", User: "ann", Quantity: 2}}
		var word string
		var op Op
		for rest := ops; rest != ""; {
			if n, _ := fmt.Sscan(rest, &word); n == 0 {
				break
			}
			rest = rest[min(len(rest), len(word)+1):]
			switch word {
			case "held":
				j.Reserved("1001", Answer{Epoch: 1}, 9, items, []Code{Held})
			case "replay":
				j.Reserved("1001", Answer{Epoch: 1}, 9, items, []Code{ReplayHeld})
			case "taken":
				j.Corrects("1001", Answer{}, false, op, items, []Done{WasReleased})
			case "done":
				j.Corrects("1001", Answer{Epoch: 1, Ver: 2}, false, op, items, []Done{Already})
			case "back":
				j.Corrects("1001", Answer{}, false, op, items, []Done{WasRefunded})
			case "bought":
				j.Corrects("1001", Answer{}, false, op, items, []Done{WasSold})
			default:
				op = Op(word)
				j.Intends("1001", 1, op, items)
			}
		}
		if got := notes(j)["s"]; got != want {
			t.Errorf("%s: %q, want %q", ops, got, want)
		}
	}
}

func TestOperationLog_JournalForgetsTheOldestAndSaysSo(t *testing.T) {
	j := newOperationLog(3)
	for i := range 5 {
		j.Reserved(
			"1001",
			Answer{Epoch: 1},
			9,
			[]Item{{Serial: fmt.Sprint(i), User: "", Quantity: 1}},
			[]Code{Held},
		)
	}
	j.Reserved(
		"another",
		Answer{Epoch: 1},
		9,
		[]Item{{Serial: "x", User: "", Quantity: 1}, {Serial: "lost", User: "", Quantity: 1}},
		[]Code{Held, SoldOut},
	)
	testkit.Want(t, "notes", fmt.Sprint(notes(j)), "map[3:H 4:H]")
	testkit.Want(t, "since now", j.reachesBack(j.at(0).made), false)
	testkit.Want(t, "since later", j.reachesBack(j.at(0).made+clocksDiffer+1), true)
	testkit.Want(t, "SKUs", len(j.places), 2)
}

func TestOperationLog_OmitsRejections(t *testing.T) {
	j := newOperationLog(3)
	items, codes := []Item{{Serial: "a", User: "", Quantity: 1}}, []Code{SoldOut}
	n := testing.AllocsPerRun(100, func() { j.Reserved("1001", Answer{Epoch: 1}, 9, items, codes) })
	if n != 0 || j.used != 0 {
		t.Errorf("%v allocations, %d entries", n, j.used)
	}
}

func BenchmarkJournalOfWinners(b *testing.B) {
	j := newOperationLog(1 << 12)
	items, codes := make([]Item, 256), make([]Code, 256)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range items {
			items[i], codes[i] = Item{Serial: fmt.Sprint(n, "-", i), User: "ann", Quantity: 1}, Held
		}
		j.Reserved("1001", Answer{Epoch: 1}, 9, items, codes)
	}
}

// A fail-over took a refund away, and the ledger takes a confirmation by the resolver before it was told.
func TestOperationLog_GiveBackOutlivesAConfirmationOfALedgerThatIsToBeTold(t *testing.T) {
	items := []Item{{Serial: "s", User: "ann", Quantity: 2}}
	for untold, want := range map[bool]string{true: "r", false: "a"} {
		for _, done := range []Done{Changed, Already} {
			j := newOperationLog(4)
			j.Intends("1001", 1, Refund, items)
			j.Corrects("1001", Answer{Epoch: 1, Ver: 2}, false, Refund, items, []Done{Changed})
			j.Intends("1001", 2, Confirm, items)
			j.Corrects("1001", Answer{Epoch: 2, Ver: 3}, untold, Confirm, items, []Done{done})
			testkit.Want(t, fmt.Sprint("untold ", untold, ", ", done), notes(j)["s"], want)
		}
	}
}

// A confirmation is answered after the refund that came behind it. The order stays given back: the confirmation is of
// an older version, and no operator has adopted the order since.
func TestOperationLog_AnOlderAnswerOvertakenByAnotherChangesNothing(t *testing.T) {
	for _, late := range []Done{Changed, Already, WasSold} {
		j := newOperationLog(4)
		items := []Item{{Serial: "s", User: "ann", Quantity: 2}}
		j.Reserved("1001", Answer{Epoch: 1, Ver: 10}, 9, items, []Code{Held})
		j.Intends("1001", 1, Confirm, items)
		j.Intends("1001", 1, Refund, items)
		j.Corrects("1001", Answer{Epoch: 1, Ver: 12}, false, Refund, items, []Done{Changed})
		j.Corrects("1001", Answer{Epoch: 1, Ver: 11}, false, Confirm, items, []Done{late})
		if got := notes(j)["s"]; got != "R" {
			t.Errorf("after the refund the answer %d comes: %q, want R", late, got)
		}
	}
}

// A refund and an adoption of one order are under way at once, and are answered in the order in which the ledger did
// them.
func TestOperationLog_HasTheAdoptionThatFollowsARefund(t *testing.T) {
	j := newOperationLog(4)
	items := []Item{{Serial: "s", User: "ann", Quantity: 2}}
	j.Reserved("1001", Answer{Epoch: 1, Ver: 1}, 9, items, []Code{Held})
	j.Intends("1001", 1, Refund, items)
	j.Intends("1001", 1, Adopt, items)
	j.Corrects("1001", Answer{Epoch: 1, Ver: 10}, false, Refund, items, []Done{Changed})
	j.Corrects("1001", Answer{Epoch: 1, Ver: 11}, false, Adopt, items, []Done{Changed})
	testkit.Want(t, "the order", notes(j)["s"], "A")
}
