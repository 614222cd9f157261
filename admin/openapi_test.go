package admin

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/testkit"
)

func described3(t *testing.T) *testkit.Description {
	t.Helper()
	d, err := testkit.ReadAPI(description)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What is served is described, and what is described is served.
func TestOpenapi_EveryRouteIsDescribedAndEveryDescriptionIsARoute(t *testing.T) {
	d := described3(t)
	if err := d.Schemas(); err != nil {
		t.Error(err)
	}
	var served []string
	for _, r := range (&API{}).routes() {
		if strings.HasPrefix(r.path, "/api/v1/") {
			served = append(served, r.method+" "+r.path)
		}
	}
	slices.Sort(served)
	if diff := cmp.Diff(d.Operations(), served); diff != "" {
		t.Errorf("openapi.yaml differs from the routes (-described +served):\n%s", diff)
	}
}

// An answer for each operation, of an API that has everything and of one that has nothing, is as described.
func TestOpenapi_AnswersAreAsDescribed(t *testing.T) {
	d := described3(t)
	watch := still(t)
	watch.addSecond(100, 1)
	full := &API{Store: &shelf{left: 3}, Gate: wheel{}, Controller: &wheel{}, History: watch,
		Queue: waitingOrders{}, Log: slog.New(slog.DiscardHandler)}
	bare := &API{Log: slog.New(slog.DiscardHandler)}
	for _, api := range []*API{full, bare} {
		h := api.Handler()
		for _, operation := range d.Operations() {
			method, path, _ := strings.Cut(operation, " ")
			if path == "/api/v1/events" && api == full {
				continue // it has no end; see TestEvents…
			}
			for _, body := range []string{"", "{}", "x", `{"key": "limits.window.max", "value": 5, "for": "10m"}`,
				`{"set": 3}`} {
				target := strings.NewReplacer("{id}", "1", "{sku}", "1001", "{serial}", "k-1").Replace(path)
				w := ask(h, method, target, body, nil)
				if err := d.Check(operation, w.Code, w.Header().Get("Content-Type"), w.Body.Bytes()); err != nil {
					t.Errorf("%s with %q: %v", operation, body, err)
				}
			}
		}
	}
}

// waitingOrders is a queue in which orders of one SKU wait.
type waitingOrders struct{}

func (waitingOrders) Take(context.Context, string, int, time.Duration) ([]QueuedOrder, error) {
	return nil, ErrConflict
}

func (waitingOrders) Settle(context.Context, QueueOutcome) (string, error) { return "", ErrInvalid }

func (waitingOrders) State(int) QueueState {
	return QueueState{Enabled: true, Waiting: 3, PerSecond: 2.5, Attempts: map[string]uint64{"confirmed": 1},
		SKUs: []QueueOfSKU{{SKU: "1001", Waiting: 3}}}
}
