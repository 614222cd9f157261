package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/internal/redistest"
)

// Strays are looked at a few at a time. Orders that certainly never reached Redis must not stand in their way.
func TestOrdersThatWereNeverSentAreNoStrays(t *testing.T) {
	server := redistest.Start(t)
	options := optionsFor(server, 2)
	options.BreakerPause = time.Hour // whatever is asked now is not sent
	r := must[*Redis](t)(NewRedis(options))
	t.Cleanup(func() { r.Close() })
	must[Stock](t)(r.SetTotal(t.Context(), sku, 1000, 0))
	d := opened(t, deskOptions(), r, nil)
	wants(t, "before", d.buy("before", ""), Held)
	l := d.lines.find([]byte(sku))
	strays := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.doubts)
	}
	failed := errors.New("as if Redis had failed")
	for range options.BreakerErrors {
		_ = r.link.Do(t.Context(), func(context.Context, *redis.Client) error { return failed }, fault)
	}
	storm(2000, 100, func(i int) { wants(t, "not sent", d.buy(fmt.Sprint(i), ""), Unsure) })
	want(t, "strays", strays(), 0)
}
