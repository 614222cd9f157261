package failover

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sluice/stockgate/ledger/ledgertest"
	"sluice/stockgate/ledger/protocol"
)

// life is one process that has a journal.
type life struct {
	t    *testing.T
	j    *StateDir
	seen *Seen
	log  *OperationLog
	lost []error
}

// live begins the life of an instance in dir, which has the name given unless it is one that was before.
func live(t *testing.T, dir, name string, most int) *life {
	t.Helper()
	l := &life{t: t, seen: NewSeen(), log: NewOperationLog(most)}
	l.j = ledgertest.Must[*StateDir](t)(OpenStateDir(dir, l.seen, l.log))
	if l.j.Name != "" {
		name = l.j.Name
	}
	ledgertest.Check(t, l.j.Begin(name))
	l.log.Keep(l.j, func(lost, _ error) { l.lost = append(l.lost, lost) })
	return l
}

// hold notes an order that is held since the call seq.
func (l *life) hold(serial string, seq int64) error {
	a := Answer{Call: seq, Epoch: 7, Ver: seq, Sale: 5}
	l.seen.Add("1001").Learn(a, true)
	return l.log.Reserved("1001", a, 99,
		[]protocol.Item{{Serial: serial, User: "a\xffnn", Quantity: 2, Cart: "c1"}}, []protocol.Code{protocol.Held})
}

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	return ledgertest.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "*", "0*")))
}

func TestJournal_ReturnsWithNameOrdersAndWhatWasSeen(t *testing.T) {
	dir := t.TempDir()
	a := live(t, dir, "first", 100)
	ledgertest.Check(t, a.hold("s1", a.j.Calls+1))
	ledgertest.Check(t, a.hold("s\xff2", a.j.Calls+2))
	one := []protocol.Item{{Serial: "s1"}}
	a.log.Intends("1001", 7, protocol.Confirm, one)
	last := Answer{Call: a.j.Calls + 3, Epoch: 7, Ver: a.j.Calls + 3, Sale: 6}
	a.log.Corrects("1001", last, false, protocol.Confirm, one, []protocol.Done{protocol.Changed})
	claim, calls := a.seen.Find("1001").Claim(), a.j.Calls
	ledgertest.Check(t, a.j.Close(false))

	b := live(t, dir, "second", 100)
	ledgertest.Want(t, "name", b.j.Name, "first")
	ledgertest.Want(t, "notes", fmt.Sprint(notes(b.log)), "map[s1:C s\xff2:H]")
	ledgertest.Want(t, "user", b.log.find("1001", "s\xff2").item.User, "a\xffnn")
	ledgertest.Want(t, "cart", b.log.find("1001", "s\xff2").item.Cart, "c1")
	ledgertest.Want(t, "unknown", b.log.find("1001", "s\xff2").unknown, true)
	now := b.seen.Find("1001").Claim()
	ledgertest.Want(t, "version", now.Ver, claim.Ver+1)
	ledgertest.Want(t, "answered", now.Answered, calls+3)
	ledgertest.Want(t, "sale", now.Sale, 6)
	ledgertest.Want(t, "later calls", b.j.Calls > calls+callsPerLife-1, true)
	ledgertest.Want(t, "to tell", b.seen.Find("1001").told().due, true)
	ledgertest.Check(t, b.j.Close(false))
}

func TestJournal_NameIsGivenUpWhereItVouchesForNothing(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"damaged": func(path string) error {
			text, err := os.ReadFile(path)
			text[len(text)/2] ^= 1
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
		"deleted": os.Remove,
	} {
		dir := t.TempDir()
		a := live(t, dir, "first", 100)
		ledgertest.Check(t, a.hold("s1", a.j.Calls+1))
		ledgertest.Check(t, a.j.Close(false))
		ledgertest.Check(t, spoil(segmentsOf(t, dir)[0]))
		b := live(t, dir, "second", 100)
		ledgertest.Want(t, name, b.j.Name, "")
		ledgertest.Check(t, b.hold("s\xff2", b.j.Calls+1))
		ledgertest.Check(t, b.j.Close(false))
		c := live(t, dir, "third", 100)
		if name == "deleted" {
			ledgertest.Want(t, name+": the next life", c.j.Name, "second")
		}
		ledgertest.Want(t, name+": answered by another name", c.seen.Find("1001").Claim().Answered <= c.j.Calls, true)
		ledgertest.Check(t, c.j.Close(false))
	}
}

func TestJournal_TornLastLineIsDroppedAndTheNameIsKept(t *testing.T) {
	dir := t.TempDir()
	a := live(t, dir, "first", 100)
	ledgertest.Check(t, a.hold("s1", a.j.Calls+1))
	ledgertest.Check(t, a.hold("torn", a.j.Calls+2))
	ledgertest.Check(t, a.j.Close(false))
	path := segmentsOf(t, dir)[0]
	text := ledgertest.Must[[]byte](t)(os.ReadFile(path))
	ledgertest.Check(t, os.Truncate(path, int64(len(text)-5)))
	b := live(t, dir, "second", 100)
	ledgertest.Want(t, "name", b.j.Name, "first")
	ledgertest.Want(t, "notes", fmt.Sprint(notes(b.log)), "map[s1:H]")
	ledgertest.Check(t, b.hold("s3", b.j.Calls+1))
	ledgertest.Check(t, b.j.Close(false))
	c := live(t, dir, "third", 100)
	ledgertest.Want(t, "then", fmt.Sprint(notes(c.log)), "map[s1:H s3:H]")
	ledgertest.Check(t, c.j.Close(false))
}

func TestJournal_TwoSegmentsHaveWhatALogKeeps(t *testing.T) {
	dir := t.TempDir()
	a := live(t, dir, "first", 10)
	for i := range 57 {
		ledgertest.Check(t, a.hold(fmt.Sprint("s", i), a.j.Calls+int64(i)+1))
	}
	ledgertest.Want(t, "segments", len(segmentsOf(t, dir)), 2)
	want := notes(a.log)
	ledgertest.Check(t, a.j.Close(false))
	b := live(t, dir, "second", 10)
	ledgertest.Check(t, ledgertest.Differ("notes", slices.Sorted(maps.Keys(notes(b.log))), slices.Sorted(maps.Keys(want))))
	ledgertest.Want(t, "it says that it dropped some", b.log.dropped > 0, true)
	ledgertest.Check(t, b.j.Close(false))
}

func TestJournal_InstanceThatLeftIsNotResumedAndItsLedgersAreKnown(t *testing.T) {
	dir := t.TempDir()
	a := live(t, dir, "first", 10)
	ledgertest.Check(t, a.hold("s1", a.j.Calls+1))
	ledgertest.Check(t, a.j.Close(true))
	b := live(t, dir, "second", 10)
	ledgertest.Want(t, "name", b.j.Name, "")
	ledgertest.Want(t, "notes", len(notes(b.log)), 0)
	c := b.seen.Find("1001").Claim()
	ledgertest.Want(t, "seen", c.Epoch, 7)
	ledgertest.Want(t, "sale", c.Sale, 5)
	ledgertest.Want(t, "answered", c.Answered, 0)
	successor := live(t, dir, "third", 10) // while the second runs
	ledgertest.Want(t, "a folder of its own", successor.j.dir != b.j.dir, true)
	ledgertest.Check(t, errors.Join(b.j.Close(false), successor.j.Close(false)))
}

func TestJournal_KnowsTheCallThatHandedOut(t *testing.T) {
	dir := t.TempDir()
	a := live(t, dir, "killed", 10)
	call := a.j.Calls + 7
	ledgertest.Check(t, a.log.HandedOut("1001", Answer{Call: call, Epoch: 5, Ver: 3}))
	ledgertest.Check(t, a.j.Close(false))
	b := live(t, dir, "", 10)
	c := b.seen.Find("1001").Claim()
	ledgertest.Want(t, "claim", c, Claim{Epoch: 5, Ver: 3, Answered: call})
	ledgertest.Check(t, b.j.Close(false))
}

func TestJournal_ThatCannotBeWrittenIsDeleted(t *testing.T) {
	dir := t.TempDir()
	a := live(t, dir, "first", 10)
	ledgertest.Check(t, a.hold("s1", a.j.Calls+1))
	a.j.out.Close()
	ledgertest.Check(t, a.hold("s\xff2", a.j.Calls+2)) // the sale goes on
	ledgertest.Want(t, "said", len(a.lost), 1)
	ledgertest.Want(t, "segments", len(segmentsOf(t, dir)), 0)
	ledgertest.Check(t, a.hold("s3", a.j.Calls+3))
	ledgertest.Check(t, a.j.Close(false))
	b := live(t, dir, "second", 10)
	ledgertest.Want(t, "name", b.j.Name, "")
	b.j.out.Close()
	b.j.dir = filepath.Join(dir, "gone") // it cannot be deleted either
	for range 2 {
		if err := b.hold("s4", b.j.Calls+1); err == nil {
			t.Error("an order may be forwarded that a whole journal does not have")
		}
	}
	if b.log.Broken() == nil || b.log.HandedOut("1001", Answer{Call: b.j.Calls + 2, Epoch: 1}) == nil {
		t.Error("an order that waited may be sent, and no journal has that")
	}
	b.j.lock.Close()
}

func TestJournal_KilledProcessReturnsBeforeOneThatHasLeft(t *testing.T) {
	for range 8 { // folders have names by chance
		dir := t.TempDir()
		a, b := live(t, dir, "left", 100), live(t, dir, "killed", 100)
		ledgertest.Check(t, a.j.Close(true))
		ledgertest.Check(t, b.j.Close(false))
		c, d := live(t, dir, "third", 100), live(t, dir, "fourth", 100)
		ledgertest.Want(t, "name", c.j.Name, "killed")
		ledgertest.Want(t, "name", d.j.Name, "")
		ledgertest.Check(t, errors.Join(c.j.Close(false), d.j.Close(false)))
	}
}
