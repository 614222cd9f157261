package fleet

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A change or a task counts with the signature of its fleet alone: not one that was written by hand, that another
// secret has signed, or that was altered.
func TestFleet_UnsignedAndForeignEntriesAreIgnored(t *testing.T) {
	t.Parallel()
	server, ctx := redistest.Start(t), t.Context()
	a, b := instanceOf(t, server.Addr, "a", "secret of the shop"), instanceOf(t, server.Addr, "b", "secret of the shop")
	foreign := instanceOf(t, server.Addr, "c", "another secret")
	b.turn(ctx)
	testkit.Must[Change](t)(a.Put(ctx, "key ours", "5", time.Hour, 0))
	testkit.Must[Change](t)(foreign.Put(ctx, "key theirs", "6", time.Hour, 0))
	ours := server.Client.HGet(ctx, a.changes, "key ours").Val()
	for name, raw := range map[string]string{
		"key mode":    "9 99999999999999 99999999999999 on - observe",
		"key altered": ours, // of another name
		"key later":   strings.Replace(ours, " on ", "9 on ", 1),
		"key text":    ours + "0",
		"key no text": "9 99999999999999 99999999999999 on",
	} {
		server.Client.HSet(ctx, a.changes, name, raw)
	}
	server.Client.HSet(ctx, a.changes, "#version", "99 x")
	b.turn(ctx)
	if got := b.names(); !slices.Equal(got, []string{"key ours=5"}) {
		t.Errorf("%q hold, want what the shop has signed", got)
	}
	if !b.holds[0].Signed {
		t.Error("it is not marked as signed")
	}
	number := testkit.Must[int64](t)(foreign.put(ctx, foreign.tasks, "", "drain", taskTime, 0))
	b.turn(ctx)
	if did := b.tasksDone(); len(did) != 0 {
		t.Errorf("%q was done, task %d of another secret", did, number)
	}
	testkit.Must[int64](t)(a.put(ctx, a.tasks, "", "show", taskTime, 0))
	b.turn(ctx)
	if did := b.tasksDone(); !slices.Equal(did, []string{"show"}) {
		t.Errorf("%q was done", did)
	}
}

// The number of a task is not signed: one that is written once more under a higher one is not done again, and one that
// another instance gives is.
func TestFleet_SignedTaskIsDoneOnceUnderWhateverNumber(t *testing.T) {
	t.Parallel()
	server, ctx := redistest.Start(t), t.Context()
	a, b := instanceOf(t, server.Addr, "a", "secret of the shop"), instanceOf(t, server.Addr, "b", "secret of the shop")
	b.turn(ctx)
	number := testkit.Must[int64](t)(a.put(ctx, a.tasks, "", "reset", taskTime, 0))
	b.turn(ctx)
	was, higher := strconv.FormatInt(number, 10), strconv.FormatInt(number+1, 10)
	raw := server.Client.HGet(ctx, a.tasks, was).Val()
	server.Client.HSet(ctx, a.tasks, higher, strings.Replace(raw, was, higher, 1), "#version", higher+" replayed")
	b.turn(ctx)
	if did := b.tasksDone(); !slices.Equal(did, []string{"reset"}) {
		t.Errorf("%q were done, want one", did)
	}
	testkit.Must[int64](t)(a.put(ctx, a.tasks, "", "reset", taskTime, 0))
	if b.turn(ctx); len(b.tasksDone()) != 2 {
		t.Errorf("%q were done, want what was asked anew as well", b.tasksDone())
	}
}

// Without a secret all is heard, and nothing is marked as signed: the caller decides.
func TestFleet_WithoutASecretNothingIsSigned(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, signing := instanceOf(t, server.Addr, "a", ""), instanceOf(t, server.Addr, "b", "a secret")
	testkit.Must[Change](t)(a.Put(t.Context(), "key a", "1", time.Hour, 0))
	testkit.Must[Change](t)(signing.Put(t.Context(), "key b", "2", time.Hour, 0))
	a.turn(t.Context())
	if got := a.names(); !slices.Equal(got, []string{"key a=1", "key b=2"}) {
		t.Errorf("%q hold", got)
	}
	for _, c := range a.holds {
		if c.Signed {
			t.Errorf("%s is marked as signed", c.Name)
		}
	}
}
