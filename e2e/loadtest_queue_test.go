package e2e

import (
	"slices"
	"strings"
	"testing"

	"sluice/internal/loadtest"
	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// A load test follows the orders that wait to their end: they are neither the shop's answers nor sold at once. Nothing
// of it is left in Redis.
func TestLoadTest_FollowsOrdersOfAQueueToTheirEnd(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+`
stock.reserve.status_url = "http://127.0.0.1:1/orders/{serial}"
stock.reserve.on_not_found = "release_after_deadline"
upstream.timeout = "1s"
upstream.response_header_timeout = "1s"
queue.max_in_flight = 4
queue.grace = "1s"
`+waitingRoutes)
	before := redis.Client.DBSize(t.Context()).Val()
	r := runLoadTest(t, path, "--buyers", "400", "--stock", "40", "--over", "100ms", "--shop-latency", "50ms",
		"--shop-capacity", "8", "--shop-errors", "10", "--patience", "40s")
	if r.code != 0 || r.Queue == nil {
		t.Fatalf("exit code %d, %+v\n%s", r.code, r.Queue, r.complaint)
	}
	q := r.Queue
	if q.Delivered != 40 || q.Waiting != 0 || q.Accepted != q.Delivered+q.Ended || q.Answer.Count != q.Accepted {
		t.Errorf("%+v", q)
	}
	if r.Buyer.Bought != 40 || r.Shop.Orders != 40 || r.Shop.Failed == 0 || r.Shop.Again != 0 || r.Ledger.Sold != 40 {
		t.Errorf("%+v, %+v, %+v", r.Buyer, r.Shop, r.Ledger)
	}
	if r.Shop.PeakInFlight > 4 {
		t.Errorf("%d orders in the shop at once", r.Shop.PeakInFlight)
	}
	if r.Redis.Calls["queue hand_out"] == 0 || r.Redis.Calls["queue decide"] == 0 {
		t.Errorf("calls of Redis: %v", r.Redis.Calls)
	}
	if slices.ContainsFunc(r.NotTested, func(s string) bool { return strings.Contains(s, "queue") }) {
		t.Errorf("not tested: %v", r.NotTested)
	}
	if left := redis.Client.Keys(t.Context(), "*").Val(); int64(len(left)) != before {
		t.Errorf("it leaves %v", left)
	}
	out := ok(t, "loadtest", "--config", path, "--buyers", "50", "--stock", "5", "--over", "100ms",
		"--shop-latency", "1ms")
	wants(t, out, "queue           5 accepted", "5 delivered, 0 ended without an order, 0 still waited")
}

// The limit of the queue is what the advice is about.
func TestLoadTest_AdvisesAboutTheLimitOfTheQueue(t *testing.T) {
	testkit.Nightly(t, "it plays a sale in real time")
	t.Parallel()
	redis := redistest.Start(t)
	path := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\n"+redisAt(redis)+`
limits.window.max_per_sku = 0
queue.max_in_flight = 2
`+waitingRoutes)
	// The shop's work is long beside what the machine takes from one order to the next: the limit decides how long the
	// sale takes.
	r := runLoadTest(t, path, "--buyers", "100", "--stock", "12", "--over", "100ms", "--shop-latency", "1s",
		"--shop-capacity", "20")
	if r.code != 0 || !slices.ContainsFunc(r.Advice, func(a loadtest.Advice) bool {
		return a.Key == "queue.max_in_flight" && a.Is == "2" && a.Could == "20"
	}) {
		t.Errorf("exit code %d, %+v\n%s", r.code, r.Advice, r.complaint)
	}
}
