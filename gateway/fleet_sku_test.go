package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/fleet"
	"sluice/stockgate/ledger"
	"sluice/stockgate/sale"
)

// What commands contain, by which a link tells them apart.
const (
	putWords    = "-- put adds a change"
	removeWords = "-- remove "
	ledgerWords = "sluice:shop:{1001}:s"
)

// link is the way of one instance to its server. It breaks off at commands that contain a word.
type link struct {
	addr string
	word atomic.Pointer[string] // nil = at none
	sent atomic.Bool            // the command arrives, and its reply does not
	once atomic.Bool            // at one command alone
	cuts atomic.Int32
}

func linkTo(t *testing.T, server *redistest.Server) *link {
	t.Helper()
	l := &link{}
	l.addr = redistest.Between(t, server.Addr, func(client, server *net.TCPConn) (there, back func()) {
		var mute atomic.Bool
		there = func() {
			redistest.Pass(server, client, func(piece []byte) bool {
				word := l.word.Load()
				if word == nil || !bytes.Contains(piece, []byte(*word)) {
					return true
				}
				l.cuts.Add(1)
				if l.once.Load() {
					l.word.Store(nil)
				}
				mute.Store(l.sent.Load())
				return l.sent.Load()
			})
		}
		return there, func() { redistest.Pass(client, server, func([]byte) bool { return !mute.Load() }) }
	})
	return l
}

// cut has the link break off before commands with a word arrive.
func (l *link) cut(word string) { l.sent.Store(false); l.once.Store(false); l.word.Store(&word) }

// lose has the link lose the reply to one command with a word.
func (l *link) lose(word string) { l.sent.Store(true); l.once.Store(true); l.word.Store(&word) }

func (l *link) mend() { l.word.Store(nil) }

// through is a gate of the fleet that reaches the server by a link.
func through(t *testing.T, server *redistest.Server, more string) (*Gateway, *link) {
	t.Helper()
	l := linkTo(t, server)
	return joined(t, &redistest.Server{Addr: l.addr}, more), l
}

// stocked has some units of SKU 1001 be for sale.
func stocked(t *testing.T, g *Gateway) {
	t.Helper()
	if _, err := g.ledgers(g.running.Load()).SetTotal(t.Context(), "1001", 5, 0); err != nil {
		t.Fatal(err)
	}
}

// pause pauses SKU 1001 on the fleet, through one of its gates.
func (h *controller) pause(t *testing.T, span time.Duration) (admin.Override, error) {
	return h.Override(t.Context(), admin.Override{SKU: "1001", Value: "paused", Until: time.Now().Add(span)})
}

// stateOf is the state of SKU 1001, or why it cannot be asked.
func stateOf(t *testing.T, g *Gateway) string {
	s, err := g.ledgers(g.running.Load()).Stock(t.Context(), "1001")
	if err != nil {
		return err.Error()
	}
	return s.Ledger.State
}

// becomes waits until the SKU is in a state, and so many overrides are listed by each gate.
func becomes(t *testing.T, state string, listed int, gates ...*Gateway) {
	t.Helper()
	for _, g := range gates {
		testkit.Eventually(t, "1001 is "+state+", and the list is as it should be", func() bool {
			return stateOf(t, g) == state && len(g.controller.Overrides()) == listed
		})
	}
}

// However often a reply is lost, the SKU is open when the list is empty.
func TestFleetPause_UndoWhoseReplyIsLostLeavesNothingPaused(t *testing.T) {
	t.Parallel()
	for _, word := range []string{removeWords, ledgerWords} {
		server := redistest.Start(t)
		a, l := through(t, server, "")
		b := joined(t, server, "")
		stocked(t, b)
		o, err := a.controller.pause(t, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		becomes(t, "paused", 1, a, b)
		l.lose(word)
		if _, err := a.controller.Undo(t.Context(), o.ID); err == nil || strings.Contains(err.Error(), "nothing is") {
			t.Errorf("%q: %v, want that it is not known what has happened", word, err)
		}
		testkit.Eventually(t, "it is undone, or undone again", func() bool {
			_, err := a.controller.Undo(t.Context(), o.ID)
			return err == nil || errors.Is(err, admin.ErrNoOverride)
		})
		becomes(t, "on", 0, a, b)
	}
}

// An undo that gets half way has opened the SKU, and the list still shows it; the second undo does the rest.
func TestFleetPause_UndoThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, l := through(t, server, "")
	b := joined(t, server, "")
	stocked(t, b)
	o, err := a.controller.pause(t, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	becomes(t, "paused", 1, a, b)
	l.cut(ledgerWords)
	if _, err := a.controller.Undo(t.Context(), o.ID); err == nil {
		t.Error("it is undone without its ledger")
	}
	l.mend()
	becomes(t, "paused", 1, a, b) // nothing is forgotten, and a reaches Redis again
	l.cut(removeWords)
	_, err = a.controller.Undo(t.Context(), o.ID)
	if err == nil || !strings.Contains(err.Error(), "is no longer paused") {
		t.Errorf("%v, want that the SKU is open and the list shows it", err)
	}
	l.mend()
	becomes(t, "on", 1, a, b)
	if _, err := a.controller.Undo(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	becomes(t, "on", 0, a, b)
}

// No SKU is shut that the list does not have.
func TestFleetPause_PutThatFails(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, l := through(t, server, "")
	b := joined(t, server, "")
	stocked(t, b)
	l.cut(putWords)
	_, err := a.controller.pause(t, time.Hour)
	if err == nil || strings.Contains(err.Error(), "nothing is changed") {
		t.Errorf("%v, want that it is not known", err)
	}
	becomes(t, "on", 0, a, b)
	l.lose(putWords)
	if _, err = a.controller.pause(t, time.Hour); err == nil || !strings.Contains(err.Error(), "may be made") {
		t.Errorf("%v, want that it may be made", err)
	}
	l.mend()
	becomes(t, "paused", 1, a, b)
	if _, err := b.controller.Undo(t.Context(), b.controller.Overrides()[0].ID); err != nil {
		t.Fatal(err)
	}
	becomes(t, "on", 0, a, b)
}

// The other instances pause the SKU where the one that was asked dies before it has done so; they end it, too.
func TestFleetPause_MakerThatDiesHalfWay(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, l := through(t, server, "")
	b := joined(t, server, "")
	stocked(t, b)
	l.lose(putWords)
	if _, err := a.controller.pause(t, 10*time.Second); err == nil {
		t.Error("it was made without an answer")
	}
	l.cut("") // whatever it says
	becomes(t, "paused", 1, b)
	becomes(t, "on", 0, b)
}

// Two operators who pause the same SKU at the same time get one pause, which ends as what was before both.
func TestFleetPause_TwoOperatorsWithinOneBeat(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := joined(t, server, ""), joined(t, server, "")
	stocked(t, a)
	if _, err := a.controller.pause(t, 8*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := b.controller.pause(t, 9*time.Second); err != nil {
		t.Fatal(err)
	}
	becomes(t, "paused", 1, a, b)
	becomes(t, "on", 0, a, b)
}

// An instance is of one fleet as long as it runs: a file with another name is rejected, and overrides hold on.
func TestFleet_NameChangesWithARestartAlone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := joined(t, server, "")
	h := g.controller
	h.must(t, "limits.concurrency.max_in_flight", 7.0)
	next := inFleet(t, server, "")
	next.Name = "other"
	err := g.Apply(next)
	if err == nil || !strings.Contains(err.Error(), "name: changes only with a restart") || maxInFlight(g) != 7 {
		t.Errorf("%v: max_in_flight %g", err, maxInFlight(g))
	}
}

// What an operator says of a SKU meanwhile stands, whichever way it is said: no instance shuts it again, or opens it.
func TestFleetPause_WhatIsSaidMeanwhileStands(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"on", "paused", "ended"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			a := joined(t, server, "")
			stocked(t, a)
			if _, err := a.controller.pause(t, 6*time.Second); err != nil {
				t.Fatal(err)
			}
			becomes(t, "paused", 1, a)
			if _, err := a.Orders().Store.SetState(t.Context(), "1001", ledger.State(state)); err != nil {
				t.Fatal(err)
			}
			late := joined(t, server, "")
			testkit.Eventually(t, "it has ended", func() bool { return len(late.controller.Overrides()) == 0 })
			becomes(t, state, 0, a, late)
		})
	}
}

// An override that its instance has no room for, and gets with a reload, ends in its time there.
func TestFleet_OverrideThatFitsLaterEndsInTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := joined(t, server, otherRate), joined(t, server, "")
	_, err := a.controller.Override(t.Context(), admin.Override{Key: "limits.rate[per_user].burst", Value: 9.0,
		Until: time.Now().Add(8 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	unfit := func() int { _, all := b.controller.standing(); return len(all) }
	testkit.Eventually(t, "b has no room", func() bool { return unfit() == 1 })
	time.Sleep(100 * time.Millisecond) // until its timer runs
	next := a.controller.config()      // as if b got the other's file
	if err := b.Apply(next); err != nil {
		t.Fatal(err)
	}
	if len(b.controller.Overrides()) != 1 || unfit() != 0 {
		t.Fatalf("%+v", b.controller.Overrides())
	}
	testkit.Eventually(t, "it ends in its time", func() bool { return len(b.controller.Overrides()) == 0 })
}

// One that never fits is not told of after its end.
func TestFleet_OverrideThatNeverFitsIsForgottenAtItsEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := joined(t, server, otherRate), joined(t, server, "")
	_, err := a.controller.Override(t.Context(), admin.Override{Key: "limits.rate[per_user].burst", Value: 9.0,
		Until: time.Now().Add(6 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	unfit := func() string {
		var one admin.Instance
		_ = json.Unmarshal([]byte(b.fleet.summary()), &one)
		return strings.Join(one.Unfit, " ")
	}
	testkit.Eventually(t, "b has no room", func() bool { return unfit() != "" })
	testkit.Eventually(t, "b has forgotten it", func() bool { return unfit() == "" })
}

// A ledger of the fleet is not one instance's alone.
func TestFleetPause_OfOneInstanceIsRejected(t *testing.T) {
	t.Parallel()
	g := joined(t, redistest.Start(t), "")
	stocked(t, g)
	_, err := g.controller.Override(t.Context(), admin.Override{SKU: "1001", Value: "paused", Scope: admin.ScopeInstance,
		Until: time.Now().Add(time.Hour)})
	if !errors.Is(err, admin.ErrConflict) || stateOf(t, g) != "on" {
		t.Errorf("%v, the SKU is %s", err, stateOf(t, g))
	}
}

// What is said of a SKU and what is said of its sale are two things: neither ends the other.
func TestFleetPause_OfASKUIsNotThatOfItsSale(t *testing.T) {
	t.Parallel()
	g := joined(t, redistest.Start(t), "")
	const sku = "1005"
	if _, err := g.ledgers(g.running.Load()).SetTotal(t.Context(), sku, 5, 0); err != nil {
		t.Fatal(err)
	}
	o, err := g.controller.Override(t.Context(), admin.Override{SKU: sku, Value: "paused",
		Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []sale.State{sale.Paused, sale.On, sale.Paused} {
		if err := g.schedule.Set(t.Context(), "night", to); err != nil {
			t.Fatal(err)
		}
	}
	if s, _, err := g.Orders().Store.ReadStock(t.Context(), sku); err != nil || s.State != ledger.Paused {
		t.Errorf("its sale was resumed, and it is %s, %v", s.State, err)
	}
	if _, err := g.controller.Undo(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	if s, _, err := g.Orders().Store.ReadStock(t.Context(), sku); err != nil || s.State != ledger.On {
		t.Errorf("its pause was undone, and it is %s, %v", s.State, err)
	}
	if all := (stores.Sales{Schedule: g.schedule}).All(); all[0].State != "paused" {
		t.Errorf("the pause of a SKU was undone, and its sale is %s", all[0].State)
	}
}

// A Redis that takes over without its last writes has lost what followed from the list, too: it is done once more.
func TestFleetPause_LedgerThatLostItsTailIsToldAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	g := joined(t, server, "")
	stocked(t, g)
	o, err := g.controller.pause(t, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	becomes(t, "paused", 1, g)
	back := func(state string, over any) { // the ledger as it was before
		t.Helper()
		if err := server.Client.HSet(t.Context(), ledgerWords, "state", state, "over", over).Err(); err != nil {
			t.Fatal(err)
		}
	}
	told := func(removed bool) {
		text, _ := json.Marshal(o)
		g.controller.fleetChanged([]fleet.Change{{Name: "sku 1001", Number: o.Number, Text: string(text),
			Until: o.Until, Removed: removed}}, true)
	}
	back("on", "0|")
	told(false)
	becomes(t, "paused", 1, g)
	if _, err := g.controller.Undo(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	becomes(t, "on", 0, g)
	back("paused", strconv.FormatInt(o.Number, 10)+"|on")
	told(true)
	becomes(t, "on", 0, g)
}

// A file that begins to keep something in Redis under a name needs a restart; all of it is rejected until then.
func TestReload_NameThatSomethingNewNeedsRejectsTheFile(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	parsed := func(head, tail string) *config.Config {
		text := head +
			"upstream.targets = [\"http://127.0.0.1:1\"]\nstock.source = \"redis\"\nstock.redis.addresses = [\"" +
			server.Addr + "\"]\nlimits.window.max = 70\n[[route]]\nname = \"order\"\nmatch = \"POST /{sku}\"\n" +
			"gate = \"check\"\nsku = \"$path_sku\"\n" + tail
		c, err := config.Parse("config.toml", []byte(text), config.NoEnvironment, Validate)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	g := gatewayOf(t, parsed("", ""))
	if err := g.fleet.join(); err != nil || g.fleet.current() != nil {
		t.Errorf("%v: without a name it shares something", err)
	}
	next := parsed("name = \"shop\"\n", "[[sale]]\nname = \"rush\"\nskus = [\"1\"]\n"+
		"starts = 2026-11-11T00:00:00+08:00\nends = 2026-11-11T02:00:00+08:00\n")
	if err := g.Apply(next); err == nil || !strings.Contains(err.Error(), "name: changes only with a restart") {
		t.Errorf("%v, want that a restart is needed", err)
	}
	if keys := server.Client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("%q were written without a name", keys)
	}
}
