package ledger

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

func TestAudit_EachBrokenInvariantIsFound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for command, kinds := range map[string]string{
		"hset sluice:shop:{1001}:s limit 9":                                 "",
		"hset sluice:shop:{1001}:s held -1":                                 "numbers",
		"hset sluice:shop:{1001}:s sold many":                               "numbers",
		"hdel sluice:shop:{1001}:s ver":                                     "numbers",
		"hset sluice:shop:{1001}:s state open":                              "state",
		"hset sluice:shop:{1001}:s total 1":                                 "over_total",
		"del sluice:shop:{1001}:s":                                          "keys",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:x": "keys",
		"eval redis.call('set',KEYS[1],1);return(1) 1 sluice:shop:{1001}:s": "keys",
	} {
		t.Run(command, func(t *testing.T) {
			testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
			r := storeOn(t, server, 4)
			if before := inspected(t, r, "1001"); before.broken() != 0 {
				t.Fatalf("whole: %+v", before)
			}
			testkit.Check(t, server.Client.Do(t.Context(), args(command)...).Err())
			if p := inspected(t, r, "1001"); strings.Join(p.broken().names(), " ") != kinds {
				t.Errorf("broken: %q, want %q in %+v", p.broken().names(), kinds, p)
			}
		})
	}
}

func TestAudit_NoLedgerBreaksNothing(t *testing.T) {
	t.Parallel()
	_, s := onRedis(t)
	if p := inspected(t, s, "nothing"); !p.none() || p.broken() != 0 {
		t.Errorf("%+v", p)
	}
	if s.InspectAll(t.Context(), []string{"{"})[0].Err == nil {
		t.Error("a SKU with a brace was inspected")
	}
}

// inspected are the numbers of one SKU.
func inspected(t *testing.T, s *Store, sku string) Inspection {
	t.Helper()
	p := s.InspectAll(t.Context(), []string{sku})[0]
	testkit.Check(t, p.Err)
	return p
}

// auditorOf returns an auditor.
func auditorOf(s Calls) *auditor {
	r := &core{store: s, o: Options{Timeout: 20 * time.Second, MetricSKUs: 10, Log: slog.New(slog.DiscardHandler)}}
	r.metrics.open()
	return newAuditor(r)
}

// alarm reports whether the gauge of an invariant is 1.
func alarm(t *testing.T, a *auditor, i invariant) bool {
	t.Helper()
	return testkit.Series(t, collected{a})["sluice_ledger_invariant_broken "+i.String()] == 1
}

// collected is an auditor as a collector.
type collected struct{ *auditor }

func (c collected) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func TestAuditor_BrokenInvariantIsAnAlarmUntilItIsWholeAgain(t *testing.T) {
	server, r := onRedis(t)
	a := auditorOf(r)
	var log testkit.Log
	a.o.Log = logTo(&log)
	a.check(t.Context(), []string{"1001"})
	for i := range numInvariants {
		testkit.Want(t, i.String(), alarm(t, a, i), false)
	}
	set := func(n int64) {
		testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "held", n).Err())
		a.check(t.Context(), []string{"1001"})
	}
	set(6)
	testkit.Want(t, "over total", alarm(t, a, withinTotal), true)
	testkit.Want(t, "numbers", alarm(t, a, readable), false)
	for _, words := range []string{"level=ERROR", "sku=1001", "broken=[over_total]", "total=5", " held=6"} {
		testkit.Want(t, "lines with "+words, log.Count(words), 1)
	}
	set(-1)
	testkit.Want(t, "over total", alarm(t, a, withinTotal), false)
	testkit.Want(t, "numbers", alarm(t, a, readable), true)
	set(1)
	testkit.Want(t, "numbers", alarm(t, a, readable), false)
	testkit.Want(t, "failed", valueOf(a.audits.WithLabelValues("failed")), 0)
	testkit.Want(t, "lines for 2 findings", log.Count("breaks an invariant"), 2)
}

func TestAuditor_VanishedNumbersStayAnAlarm(t *testing.T) {
	server, r := onRedis(t)
	a := auditorOf(r)
	testkit.Check(t, server.Client.Del(t.Context(), "sluice:shop:{1001}:s").Err())
	a.check(t.Context(), []string{"1001"})
	a.check(t.Context(), nil) // the reserver has forgotten it
	testkit.Want(t, "keys", a.broken[typedKeys].Load(), 1)
	testkit.Check(t, server.Client.FlushAll(t.Context()).Err())
	a.check(t.Context(), nil)
	testkit.Want(t, "keys", a.broken[typedKeys].Load(), 0)
}

func TestAuditor_ForgottenSKUHasNoNumbers(t *testing.T) {
	server, r := onRedis(t)
	a := auditorOf(r)
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "held", 6).Err())
	a.check(t.Context(), []string{"1001"})
	testkit.Want(t, "numbers while it is swept", len(a.numbers), 1)
	a.forget("1001")
	a.check(t.Context(), nil) // it is broken, and so is judged again
	testkit.Want(t, "broken", a.broken[withinTotal].Load(), 1)
	testkit.Want(t, "numbers when it is forgotten", len(a.numbers), 0)
}

func TestAuditor_CallThatFailsIsCountedAndIsNoAlarm(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.Do(t.Context(), "acl", "setuser", "default", "-type").Err())
	a := auditorOf(r)
	a.check(t.Context(), []string{"1001"})
	testkit.Want(t, "failed", valueOf(a.audits.WithLabelValues("failed")), 1)
	testkit.Want(t, "alarms", len(a.known), 0)
}

func TestAuditor_SKUThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	server, r := onRedis(t)
	testkit.Check(t, server.Client.HSet(t.Context(), "sluice:shop:{1001}:s", "state", "open").Err())
	a := auditorOf(r)
	a.check(t.Context(), []string{"{", "1001"})
	testkit.Want(t, "state", a.broken[knownState].Load(), 1)
	testkit.Want(t, "failed", valueOf(a.audits.WithLabelValues("failed")), 1)
}
