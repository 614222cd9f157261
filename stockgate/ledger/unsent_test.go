package ledger

import (
	"fmt"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// Orphans are looked up a few at a time. Orders that certainly never reached Redis must not stand in their way.
func TestReserver_OrdersThatWereNeverSentAreNoOrphans(t *testing.T) {
	server := redistest.Start(t)
	options := optionsFor(server, 2)
	options.BreakerPause = time.Hour // whatever is asked now is not sent
	r := testkit.Must[*Store](t)(NewStore(options))
	t.Cleanup(func() { r.Close() })
	testkit.Must[Stock](t)(r.SetTotal(t.Context(), testSKU, 1000, 0))
	d := opened(t, testOptions(), r, nil)
	wants(t, "before", d.buy("before", ""), Held)
	l := d.skus.Find([]byte(testSKU))
	orphans := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.unresolved)
	}
	server.Kill()
	for range options.BreakerErrors {
		_, _, _ = r.ReadStock(t.Context(), testSKU)
	}
	testkit.Storm(2000, 100, func(i int) { wants(t, "not sent", d.buy(fmt.Sprint(i), ""), Unsure) })
	testkit.Want(t, "orphans", orphans(), 0)
}
