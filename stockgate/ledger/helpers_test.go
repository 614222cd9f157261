package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"sluice/internal/testkit"
)

// testSKU is the one that most tests sell.
const testSKU = "1001"

// errNetwork is what a network does to a call.
var errNetwork = errors.New("lost")

// takeUnit reserves one unit for a user until 1,000 and returns the code.
func takeUnit(t testing.TB, s Calls, serial, user string) Code {
	t.Helper()
	codes := make([]Code, 1)
	_, err := s.Reserve(context.Background(), "1001", 0, 1, 1_000,
		[]Item{{Serial: serial, User: user, Quantity: 1}}, codes)
	testkit.Check(t, err)
	return codes[0]
}

// finishOne decides one serial at the time 1; tombstones stay until 2,000.
func finishOne(t testing.TB, s Calls, op Op, serial string) Done {
	t.Helper()
	done := make([]Done, 1)
	_, err := s.Finish(context.Background(), "1001", 1, 2_000, op,
		[]Item{{Serial: serial, User: "ann", Quantity: 1}}, done)
	testkit.Check(t, err)
	return done[0]
}

func stockIn(t testing.TB, s Calls) Stock {
	t.Helper()
	stock, ok, err := s.ReadStock(context.Background(), "1001")
	testkit.Check(t, err)
	if !ok {
		t.Fatal("no ledger")
	}
	return stock
}

func differ[T any](what string, got, want T) error {
	if reflect.DeepEqual(got, want) { // much faster than a diff
		return nil
	}
	return fmt.Errorf("%s differ (-want +got):\n%s", what, cmp.Diff(want, got))
}

// valueOf is the value of a counter or a gauge.
func valueOf(m prometheus.Metric) int64 {
	var d dto.Metric
	if err := m.Write(&d); err != nil {
		panic(err)
	}
	return int64(d.GetCounter().GetValue() + d.GetGauge().GetValue())
}

// logTo logs to w.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// nightly is whether make nightly runs the tests.
func nightly() bool { return os.Getenv("SLUICE_NIGHTLY") != "" }

// rounds is how many of n schedules a run has: all of them at night, else a tenth.
func rounds(n uint64) uint64 {
	if nightly() {
		return n
	}
	return n / 10
}
