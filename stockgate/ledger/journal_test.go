package ledger

import (
	"fmt"
	"testing"
)

// notes are what a journal says of 1001, by serial.
func notes(j *journal) map[string]string {
	all, _ := j.of("1001", func(*entry) bool { return true })
	said := map[string]string{}
	for i := range all {
		said[all[i].item.Serial] = all[i].word()
	}
	return said
}

func TestJournalSaysWhatItsInstanceWasTold(t *testing.T) {
	for ops, want := range map[string]string{
		"held": "H", "held confirm": "C", "held release": "X", "held confirm refund": "R", "held refund": "R",
		"held confirm release": "C", "held release confirm": "X", "held release adopt": "A", "held adopt refund": "R",
		"confirm": "c", "release": "x", "refund": "r", "confirm refund": "r", "adopt": "A", "confirm adopt": "A",
		"replay": "H", "held confirm replay": "C", "held confirm taken": "X", "release bought": "c",
	} {
		j := newJournal(4)
		items := []Item{{"s", "ann", 2}}
		var word string
		for rest := ops; rest != ""; {
			if n, _ := fmt.Sscan(rest, &word); n == 0 {
				break
			}
			rest = rest[min(len(rest), len(word)+1):]
			switch word {
			case "held":
				j.reserved("1001", 1, 9, items, []Code{Held})
			case "replay":
				j.reserved("1001", 1, 9, items, []Code{ReplayHeld})
			case "taken":
				j.corrects("1001", Hint{}, items, []Done{WasReleased})
			case "bought":
				j.corrects("1001", Hint{}, items, []Done{WasSold})
			default:
				j.intends("1001", 1, Op(word), items)
			}
		}
		if got := notes(&j)["s"]; got != want {
			t.Errorf("%s: %q, want %q", ops, got, want)
		}
	}
}

func TestJournalForgetsTheOldestAndSaysSo(t *testing.T) {
	j := newJournal(3)
	for i := range 5 {
		j.reserved("1001", 1, 9, []Item{{fmt.Sprint(i), "", 1}}, []Code{Held})
	}
	j.reserved("another", 1, 9, []Item{{"x", "", 1}, {"lost", "", 1}}, []Code{Held, SoldOut})
	want(t, "notes", fmt.Sprint(notes(&j)), "map[3:H 4:H]")
	want(t, "since now", j.since(j.ring[0].made), false)
	want(t, "since later", j.since(j.ring[0].made+clocksDiffer+1), true)
	want(t, "SKUs", len(j.places), 2)
}

func TestRefusalsNeverComeIntoTheJournal(t *testing.T) {
	j := newJournal(3)
	items, codes := []Item{{"a", "", 1}}, []Code{SoldOut}
	if n := testing.AllocsPerRun(100, func() { j.reserved("1001", 1, 9, items, codes) }); n != 0 || len(j.ring) != 0 {
		t.Errorf("%v allocations, %d entries", n, len(j.ring))
	}
}

func BenchmarkJournalOfWinners(b *testing.B) {
	j := newJournal(1 << 12)
	items, codes := make([]Item, 256), make([]Code, 256)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range items {
			items[i], codes[i] = Item{fmt.Sprint(n, "-", i), "ann", 1}, Held
		}
		j.reserved("1001", 1, 9, items, codes)
	}
}
