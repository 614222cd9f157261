package admin

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Second is what the gate did in one second, and how it stood at its end.
type Second struct {
	At   int64   `json:"at"`   // Unix second at which it ends; rises
	Span float64 `json:"span"` // seconds that it covers: 1, or more where the machine was too busy to look

	Requests int64            `json:"requests"` // answered, by the shop or here
	Admitted int64            `json:"admitted"` // Requests that were not rejected
	Rejected map[string]int64 `json:"rejected"` // by reason; a reason without any is left out
	Causes   map[string]int64 `json:"causes"`   // of the Rejected that have one, by its label
	Observed map[string]int64 `json:"observed"` // let through, although enforcing would have rejected them; likewise

	Connections         int64            `json:"connections"`          // open
	RejectedConnections map[string]int64 `json:"rejected_connections"` // by reason, before any HTTP was read

	Upstream UpstreamSecond `json:"shop"`
	Redis    *RedisSecond   `json:"redis"` // null where no Redis is asked
	Windows  []WindowSecond `json:"windows"`

	Stock []StockSecond `json:"stock"` // the ledgers with most units held and sold, at most 20; as of their last audit

	// stock that the shop takes, so that units are not counted here; those with least left, at most 20
	NotCounted []NotCounted `json:"not_counted"`
	Hot        []HotSecond  `json:"hot"` // the SKUs that most recent requests ask for, at most 10

	Unknown int64         `json:"unknown"` // reservations whose outcome is unknown, all SKUs together
	Routes  []RouteSecond `json:"routes"`  // that have ever answered, by name, at most 50

	rateRejected, rateObserved map[string]int64 // by keyed rate
}

// UpstreamSecond is the shop's part.
type UpstreamSecond struct {
	Requests int64 `json:"requests"` // that it answered, or failed to
	// those without an answer, or with a 5xx, and those that reached no target: may exceed Requests
	Errors   int64   `json:"errors"`
	P50      float64 `json:"p50_ms"` // of these; 0 = there were none
	P99      float64 `json:"p99_ms"`
	InFlight int64   `json:"in_flight"`
	Limit    int64   `json:"limit"` // of InFlight; 0 = none
	Queue    int64   `json:"queue"` // who waits for a place
	Up       int64   `json:"up"`    // targets
	Targets  int64   `json:"targets"`
}

// RedisSecond is Redis's part: stock readings and pings, without the calls of the ledger.
type RedisSecond struct {
	Calls  int64   `json:"calls"` // round trips, one for a whole batch
	P50    float64 `json:"p50_ms"`
	P99    float64 `json:"p99_ms"`
	Errors int64   `json:"errors"`
	Up     bool    `json:"up"`
}

// WindowSecond is how many windows were used, and filled to their max.
type WindowSecond struct {
	Of        string `json:"of"` // "all" or "sku"
	Used      int64  `json:"used"`
	Saturated int64  `json:"saturated"`
}

// StockSecond is one ledger.
type StockSecond struct {
	SKU   string `json:"sku"` // "_other": those beyond ops.metrics_max_skus together
	Total int64  `json:"total"`
	Held  int64  `json:"held"`
	Sold  int64  `json:"sold"`
	Free  int64  `json:"free"`
}

// NotCounted is a SKU without a ledger: its units are read, and not counted by orders.
type NotCounted struct {
	SKU  string `json:"sku"`
	Left int64  `json:"left"`
}

// HotSecond is a SKU that many requests ask for.
type HotSecond struct {
	SKU      string `json:"sku"`
	Requests int64  `json:"requests"` // recent ones, halved each minute
	Left     *int64 `json:"left"`     // null: it is not known
}

// RouteSecond is one route.
type RouteSecond struct {
	Route    string `json:"route"`
	Requests int64  `json:"requests"`
	Rejected int64  `json:"rejected"`
}

// Bounds of what one Second holds, beside the reasons, of which there are some thirty.
const (
	mostStock  = 20
	mostRoutes = 50
)

// between is the second from before to now, which are span seconds apart.
func between(before, now *reading, at int64, span float64) *Second {
	rose := func(name string) map[string]int64 { return rise(now.series[name], before.series[name]) }
	took := func(name string) distribution { return now.times[name].since(before.times[name]) }
	shop, redis := took("upstream_request_duration_seconds"), took("redis_command_duration_seconds")
	sent, failed := now.upstream()
	sentBefore, failedBefore := before.upstream()
	s := &Second{
		At: at, Span: math.Round(span*1000) / 1000,
		Requests: max(0, now.requests-before.requests), Rejected: rise(now.rejected, before.rejected),
		Causes: rise(now.causes, before.causes), Observed: rise(now.observed, before.observed),
		Connections: now.total("connections"), RejectedConnections: rose("rejected_connections_total"),
		Upstream: UpstreamSecond{
			Requests: sum(rise(sent, sentBefore)), Errors: sum(rise(failed, failedBefore)), P50: shop.quantile(0.5),
			P99:      shop.quantile(0.99),
			InFlight: now.total("upstream_in_flight"), Limit: now.total("upstream_in_flight_limit"),
			Queue: now.total("queue_length"), Up: now.total("upstream_up"), Targets: int64(len(now.series["upstream_up"])),
		},
		Unknown: now.total("reservations_unknown"), Stock: now.mostSold(), NotCounted: now.leastLeft(), Hot: now.hottest(),
		Windows: []WindowSecond{}, rateRejected: rise(now.rateRejected, before.rateRejected),
		rateObserved: rise(now.rateObserved, before.rateObserved),
	}
	s.Admitted = max(0, s.Requests-sum(s.Rejected))
	if len(now.series["redis_calls_total"])+len(now.series["redis_up"]) > 0 {
		s.Redis = &RedisSecond{Calls: sum(rose("redis_calls_total")), P50: redis.quantile(0.5), P99: redis.quantile(0.99),
			Errors: sum(rose("redis_errors_total")), Up: now.total("redis_up") == 1}
	}
	used, saturated := now.series["windows_total"], now.series["windows_saturated_total"]
	for _, of := range slices.Sorted(maps.Keys(used)) {
		s.Windows = append(s.Windows, WindowSecond{of, used[of] - before.series["windows_total"][of],
			saturated[of] - before.series["windows_saturated_total"][of]})
	}
	s.Routes = routeSeconds(before, now)
	return s
}

// mostSold are the ledgers that a chart has room for: those with most units gone, by name where they have the same.
func (r *reading) mostSold() []StockSecond {
	all := make([]StockSecond, 0, len(r.stock))
	for _, s := range r.stock {
		all = append(all, *s)
	}
	slices.SortStableFunc(all, func(x, y StockSecond) int {
		return cmp.Or(int(y.Held+y.Sold-x.Held-x.Sold), cmp.Compare(x.SKU,
			y.SKU))
	})
	return all[:min(len(all), mostStock)]
}

// leastLeft are the SKUs without a ledger that a second has room for.
func (r *reading) leastLeft() []NotCounted {
	all := []NotCounted{}
	for sku, left := range r.series["sku_stock_left"] {
		if r.stock[sku] == nil {
			all = append(all, NotCounted{sku, left})
		}
	}
	slices.SortStableFunc(all, func(x, y NotCounted) int { return cmp.Or(int(x.Left-y.Left), cmp.Compare(x.SKU, y.SKU)) })
	return all[:min(len(all), mostStock)]
}

// hottest are the hot SKUs, and what is left of them.
func (r *reading) hottest() []HotSecond {
	all := []HotSecond{}
	for sku, n := range r.series["hot_sku_requests"] {
		one := HotSecond{SKU: sku, Requests: n}
		if ledger := r.stock[sku]; ledger != nil {
			one.Left = &ledger.Free
		} else if left, known := r.series["sku_stock_left"][sku]; known {
			one.Left = &left
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(x, y HotSecond) int {
		return cmp.Or(int(y.Requests-x.Requests), cmp.Compare(x.SKU, y.SKU))
	})
	return all
}

func routeSeconds(before, now *reading) []RouteSecond {
	told := []RouteSecond{}
	for _, r := range now.routes {
		if len(told) == mostRoutes {
			break
		}
		if r.Requests > 0 {
			was := before.route(r.Route)
			told = append(told, RouteSecond{r.Route, r.Requests - was.Requests, r.Rejected - was.Rejected})
		}
	}
	return told
}

// rise is by how much each count has risen; those that have not are left out. What counts may go, as a target does with
// a reload.
func rise(now, before map[string]int64) map[string]int64 {
	by := map[string]int64{}
	for name, n := range now {
		if n > before[name] {
			by[name] = n - before[name]
		}
	}
	return by
}

func sum(counts map[string]int64) (n int64) {
	for _, one := range counts {
		n += one
	}
	return n
}
