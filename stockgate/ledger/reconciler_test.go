package ledger

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// untold is a frozen ledger of which this instance knows nothing.
type untold struct{ Calls }

func (untold) Pending() []string { return nil }

func (untold) Look(context.Context, string, int64) (Result, error) {
	return Result{Stock: Stock{StockVersion: StockVersion{State: Frozen}},
		Was: On, Waits: []string{"gone"}}, nil
}

// When all instances were started again before they had told what they knew, none has anything to tell any more. The
// log and Stuck name the SKU all the same, and what it waits for.
func TestReconciler_NamesASKUThatNoInstanceCanOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		c := newReconciler(&core{store: untold{}, o: Options{Log: log}}, nil, nil)
		for range 90 {
			c.Run(t.Context(), []string{"1001"})
			time.Sleep(time.Second) // of synctest: the minute after which it is named passes
		}
		if n := strings.Count(text.String(), "SKU stays frozen"); n != 1 || !strings.Contains(text.String(), "waits_for=[gone]") {
			t.Errorf("%d lines name it: %s", n, text.String())
		}
		if sku := c.Stuck(); sku != "1001" {
			t.Errorf("%q is stuck", sku)
		}
		c.Run(t.Context(), nil)
		if sku := c.Stuck(); sku != "" {
			t.Errorf("%q is stuck, although it is open again", sku)
		}
		if lines := strings.Split(text.String(), "\n"); !strings.Contains(lines[len(lines)-2], "level=INFO") {
			t.Errorf("the log ends with an alarm: %s", text.String())
		}
	})
}
