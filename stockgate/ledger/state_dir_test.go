package ledger

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sluice/internal/testkit"
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
func beginLife(t *testing.T, dir, name string, most int) *life {
	t.Helper()
	l := &life{t: t, seen: newSeen(), log: newOperationLog(most)}
	l.j = testkit.Must[*StateDir](t)(openStateDir(dir, l.seen, l.log))
	if l.j.Name != "" {
		name = l.j.Name
	}
	testkit.Check(t, l.j.Begin(name))
	l.log.Keep(l.j, func(lost, _ error) { l.lost = append(l.lost, lost) })
	return l
}

// hold notes an order that is held since the call seq.
func (l *life) hold(serial string, seq int64) error {
	a := Answer{Call: seq, Epoch: 7, Ver: seq, Sale: 5}
	l.seen.Add("1001").Learn(a, true)
	return l.log.Reserved("1001", a, 99,
		[]Item{{Serial: serial, User: "a\xffnn", Quantity: 2, Cart: "c1"}}, []Code{Held})
}

func segmentsOf(t *testing.T, dir string) []string {
	t.Helper()
	return testkit.Must[[]string](t)(filepath.Glob(filepath.Join(dir, "*", "0*")))
}

func TestJournal_ReturnsWithNameOrdersAndWhatWasSeen(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "first", 100)
	testkit.Check(t, a.hold("s1", a.j.Calls+1))
	testkit.Check(t, a.hold("s\xff2", a.j.Calls+2))
	one := []Item{{Serial: "s1"}}
	a.log.Intends("1001", 7, Confirm, one)
	last := Answer{Call: a.j.Calls + 3, Epoch: 7, Ver: a.j.Calls + 3, Sale: 6}
	a.log.Corrects("1001", last, false, Confirm, one, []Done{Changed})
	claim, calls := a.seen.Find("1001").Claim(), a.j.Calls
	testkit.Check(t, a.j.Close(false))

	b := beginLife(t, dir, "second", 100)
	testkit.Want(t, "name", b.j.Name, "first")
	testkit.Want(t, "notes", fmt.Sprint(notes(b.log)), "map[s1:C s\xff2:H]")
	testkit.Want(t, "user", b.log.find("1001", "s\xff2").item.User, "a\xffnn")
	testkit.Want(t, "cart", b.log.find("1001", "s\xff2").item.Cart, "c1")
	testkit.Want(t, "unknown", b.log.find("1001", "s\xff2").unknown, true)
	now := b.seen.Find("1001").Claim()
	testkit.Want(t, "version", now.Ver, claim.Ver+1)
	testkit.Want(t, "answered", now.Answered, calls+3)
	testkit.Want(t, "sale", now.Sale, 6)
	testkit.Want(t, "later calls", b.j.Calls > calls+callsPerLife-1, true)
	testkit.Want(t, "to tell", b.seen.Find("1001").told().due, true)
	testkit.Check(t, b.j.Close(false))
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
		a := beginLife(t, dir, "first", 100)
		testkit.Check(t, a.hold("s1", a.j.Calls+1))
		testkit.Check(t, a.j.Close(false))
		testkit.Check(t, spoil(segmentsOf(t, dir)[0]))
		b := beginLife(t, dir, "second", 100)
		testkit.Want(t, name, b.j.Name, "")
		testkit.Check(t, b.hold("s\xff2", b.j.Calls+1))
		testkit.Check(t, b.j.Close(false))
		c := beginLife(t, dir, "third", 100)
		if name == "deleted" {
			testkit.Want(t, name+": the next life", c.j.Name, "second")
		}
		testkit.Want(t, name+": answered by another name", c.seen.Find("1001").Claim().Answered <= c.j.Calls, true)
		testkit.Check(t, c.j.Close(false))
	}
}

func TestJournal_TornLastLineIsDroppedAndTheNameIsKept(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "first", 100)
	testkit.Check(t, a.hold("s1", a.j.Calls+1))
	testkit.Check(t, a.hold("torn", a.j.Calls+2))
	testkit.Check(t, a.j.Close(false))
	path := segmentsOf(t, dir)[0]
	text := testkit.Must[[]byte](t)(os.ReadFile(path))
	testkit.Check(t, os.Truncate(path, int64(len(text)-5)))
	b := beginLife(t, dir, "second", 100)
	testkit.Want(t, "name", b.j.Name, "first")
	testkit.Want(t, "notes", fmt.Sprint(notes(b.log)), "map[s1:H]")
	testkit.Check(t, b.hold("s3", b.j.Calls+1))
	testkit.Check(t, b.j.Close(false))
	c := beginLife(t, dir, "third", 100)
	testkit.Want(t, "then", fmt.Sprint(notes(c.log)), "map[s1:H s3:H]")
	testkit.Check(t, c.j.Close(false))
}

func TestJournal_TwoSegmentsHaveWhatALogKeeps(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "first", 10)
	for i := range 57 {
		testkit.Check(t, a.hold(fmt.Sprint("s", i), a.j.Calls+int64(i)+1))
	}
	testkit.Want(t, "segments", len(segmentsOf(t, dir)), 2)
	want := notes(a.log)
	testkit.Check(t, a.j.Close(false))
	b := beginLife(t, dir, "second", 10)
	testkit.Check(t, differ("notes", slices.Sorted(maps.Keys(notes(b.log))), slices.Sorted(maps.Keys(want))))
	testkit.Want(t, "it says that it dropped some", b.log.dropped > 0, true)
	testkit.Check(t, b.j.Close(false))
}

// A fail-over may put back the mark of an instance that has left: the next one tells for it what it did.
func TestJournal_InstanceThatLeftIsResumedAndClaimsNoMark(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "first", 10)
	call := a.j.Calls + 1
	testkit.Check(t, a.hold("s1", call))
	testkit.Check(t, a.j.Close(true))
	b := beginLife(t, dir, "second", 10)
	testkit.Want(t, "name", b.j.Name, "first")
	testkit.Want(t, "notes", len(notes(b.log)), 1)
	testkit.Want(t, "answered", b.seen.Find("1001").Claim().Answered, -call)
	b.seen.Find("1001").Learn(Answer{Call: b.j.Calls + 1, Epoch: 7, Ver: 9}, true)
	testkit.Want(t, "once it has called", b.seen.Find("1001").Claim().Answered, b.j.Calls+1)
	testkit.Check(t, b.j.Close(false))
}

func TestJournal_InstanceThatLeftLongAgoIsNotResumedAndItsLedgersAreKnown(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "first", 10)
	testkit.Check(t, a.hold("s1", a.j.Calls+1))
	testkit.Check(t, a.j.Close(true))
	before := time.Now().Add(-2 * leftFor)
	testkit.Check(t, os.Chtimes(filepath.Join(a.j.dir, leftFile), before, before))
	b := beginLife(t, dir, "second", 10)
	testkit.Want(t, "name", b.j.Name, "")
	testkit.Want(t, "notes", len(notes(b.log)), 0)
	c := b.seen.Find("1001").Claim()
	testkit.Want(t, "seen", c.Epoch, 7)
	testkit.Want(t, "sale", c.Sale, 5)
	testkit.Want(t, "answered", c.Answered, 0)
	successor := beginLife(t, dir, "third", 10) // while the second runs
	testkit.Want(t, "a folder of its own", successor.j.dir != b.j.dir, true)
	testkit.Check(t, errors.Join(b.j.Close(false), successor.j.Close(false)))
}

func TestJournal_KnowsTheCallThatHandedOut(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "killed", 10)
	call := a.j.Calls + 7
	testkit.Check(t, a.log.HandedOut("1001", Answer{Call: call, Epoch: 5, Ver: 3}))
	testkit.Check(t, a.j.Close(false))
	b := beginLife(t, dir, "", 10)
	c := b.seen.Find("1001").Claim()
	testkit.Want(t, "claim", c, Claim{Epoch: 5, Ver: 3, Answered: call})
	testkit.Check(t, b.j.Close(false))
}

func TestJournal_ThatCannotBeWrittenIsDeleted(t *testing.T) {
	dir := t.TempDir()
	a := beginLife(t, dir, "first", 10)
	testkit.Check(t, a.hold("s1", a.j.Calls+1))
	a.j.out.Close()
	testkit.Check(t, a.hold("s\xff2", a.j.Calls+2)) // the sale goes on
	testkit.Want(t, "said", len(a.lost), 1)
	testkit.Want(t, "segments", len(segmentsOf(t, dir)), 0)
	testkit.Check(t, a.hold("s3", a.j.Calls+3))
	testkit.Check(t, a.j.Close(false))
	b := beginLife(t, dir, "second", 10)
	testkit.Want(t, "name", b.j.Name, "")
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
		a, b := beginLife(t, dir, "left", 100), beginLife(t, dir, "killed", 100)
		testkit.Check(t, a.j.Close(true))
		testkit.Check(t, b.j.Close(false))
		c, d := beginLife(t, dir, "third", 100), beginLife(t, dir, "fourth", 100)
		testkit.Want(t, "name", c.j.Name, "killed")
		testkit.Want(t, "name", d.j.Name, "left")
		testkit.Check(t, errors.Join(c.j.Close(false), d.j.Close(false)))
	}
}

// The path of a folder may have the signs of a pattern: the journal in it is found again.
func TestStateDir_JournalIsFoundAgainUnderAnyPath(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"[prod]", "[", `a*b?`, `back\slash`} {
		dir := filepath.Join(t.TempDir(), name)
		j, err := openStateDir(dir, &Seen{}, newOperationLog(4))
		testkit.Check(t, err)
		testkit.Check(t, errors.Join(j.Begin("a"), j.Close(false)))
		again, err := openStateDir(dir, &Seen{}, newOperationLog(4))
		testkit.Check(t, err)
		testkit.Want(t, "the instance of "+name, again.Name, "a")
		testkit.Check(t, again.Close(false))
	}
}
