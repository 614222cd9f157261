package proxy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice/proxy/auth"
	"sluice/proxy/reject"
	"sluice/upstream"
)

// checkCase drives one check to one of its reasons.
type checkCase struct {
	check  *check
	reason reject.Reason
	set    func(*Options) // on options with an order route and a search route
	raw    string         // "" = order; INSTANCE = the name of this instance
}

// allCheckCases drive each check to each reason that its row lists.
func allCheckCases() (all []checkCase) {
	add := func(c *check, reason reject.Reason, raw string, set func(*Options)) {
		all = append(all, checkCase{c, reason, set, raw})
	}
	add(&denyList, reject.DeniedIP, "", func(o *Options) { o.Deny = prefixes(clientAddress + "/32") })
	add(&unmatched, reject.NoRoute, search, func(o *Options) { o.Routes = o.Routes[:1] })
	add(&unmatched, reject.Loop, strings.Replace(order, "Host:", "Via: 1.1 INSTANCE\r\nHost:", 1), nil)
	add(&unmatched, reject.Ambiguous, orderWith("/api", "/API"), nil)
	add(&connRate, reject.ConnRate, "", func(o *Options) {
		o.ConnRate = func() ConnRateLimiter { return exhaustedRate{} }
	})
	addIdentityCases(add)
	addRequirementCases(add)
	for _, calls := range []int{0, 1} { // the schedule is asked twice
		c := &schedule
		for _, reason := range []reject.Reason{reject.NotStarted, reject.Ended, reject.Paused} {
			add(c, reason, "", func(o *Options) { o.Schedule = &closing{new([]string), calls, reason} })
		}
		add(c, reject.SoldOut, "", func(o *Options) { o.Feedback = &lateFeedback{after: calls} })
	}
	for _, reason := range []reject.Reason{reject.SoldOut, reject.Paused, reject.UnknownSKU} { // see Stock.Closed
		add(&soldOut, reason, "", closedFor(reason))
	}
	for _, reason := range firstReading.reasons { // see Stock.AwaitReading
		add(&firstReading, reason, "", func(o *Options) { o.Stock = awaitedStock{o.Stock.(*stockMap), reason} })
	}
	addTokenAndRateCases(add)
	addWaitingCases(add)
	for _, reason := range []reject.Reason{reject.SoldOut, reject.Duplicate, reject.Concurrency, reject.UnknownSKU,
		reject.StockError, reject.Paused} { // see Stock.Enter
		add(&stock, reason, "", func(o *Options) { o.Stock = decidingStock{o.Stock.(*stockMap), reason} })
	}
	addReservationCases(add)
	return all
}

type addCase func(c *check, reason reject.Reason, raw string, set func(*Options))

// addIdentityCases adds those of the SKU, the user and the body that is read for them.
func addIdentityCases(add addCase) {
	const json = "Content-Type: application/json\r\n"
	inJSON := func(o *Options) { o.Routes[0].SKU = "$json_sku" }
	add(&identity, reject.BadRequest, orderWith("1001", "10%2001"), nil)
	add(&identity, reject.Ambiguous, orderWith("uid=7", "uid=7; uid=8"), nil)
	add(&identity, reject.Unidentified, orderWith("uid=7", ""), nil)
	add(&identity, reject.TooLarge, orderWith(whole, json+large), inJSON)
	add(&identity, reject.TooSlow, orderWith(whole, json+late), inJSON)
	add(&identity, reject.Malformed, orderWith(whole, json+broken), inJSON)
	const slow = "Content-Length: 1000\r\n\r\nhi"
	full := func(o *Options) { o.BodyMemory = 999 }
	add(&identity, reject.Overloaded, orderWith(whole, json+slow), func(o *Options) { inJSON(o); full(o) })
	add(&identity, reject.Concurrency, orderWith(whole, json+large), func(o *Options) {
		inJSON(o)
		o.MaxBody, o.Concurrency = 1<<20, fullQueue{}
	})
	add(&body, reject.Overloaded, orderWith(whole, slow), full)
	add(&body, reject.TooLarge, orderWith(whole, large), nil)
	add(&body, reject.TooSlow, orderWith(whole, late), nil)
	add(&body, reject.Malformed, orderWith(whole, broken), nil)
}

// requiring makes the order route compare.
func requiring(conditions ...string) func(*Options) {
	return func(o *Options) {
		o.Routes = slices.Clone(o.Routes)
		o.Routes[0].Require = conditions
	}
}

func addRequirementCases(add addCase) {
	add(&requirement, reject.Denied, "", requiring("$cookie_uid!=7"))
	add(&requirement, reject.Unidentified, "", requiring("$http_level>=2"))
	add(&requirement, reject.Ambiguous, orderWith("/order", "/order?q=1&q=2"), requiring("$arg_q=1"))
	add(&requirement, reject.BadRequest, orderWith("/order", "/order?q=%ff"), requiring("$arg_q=1"))
}

// closedRoom is a waiting room whose passes are all wrong, but for "good".
type closedRoom struct {
	used     []string
	over     bool
	joinable bool
}

func (c *closedRoom) Admits(_ int64, _, _, pass []byte) (reject.Reason, reject.Cause) {
	switch {
	case string(pass) == "good":
		return reject.Admitted, reject.NoCause
	case c.over:
		return reject.SoldOut, reject.NoCause
	}
	return reject.Room, reject.PassMissing
}

func (c *closedRoom) Joinable([]byte) bool { return c.joinable }

func (*closedRoom) Bypass() *RoomBypass { return nil }

func (c *closedRoom) Used(user []byte) { c.used = append(c.used, string(user)) }

func (*closedRoom) Answer(q *RoomQuestion) RoomAnswer {
	switch string(q.Action) {
	case "gone":
		return RoomAnswer{Rejection: reject.NoRoute}
	case "away":
		return RoomAnswer{Rejection: reject.Overloaded}
	}
	a := RoomAnswer{Status: 200, Type: "text/plain"}
	a.Body = fmt.Appendf(nil, "%s post=%v user=%s ticket=%s pass=%s page=%v",
		q.Action, q.Post, q.User, q.Signed, q.Pass, q.Page)
	if len(q.Action) == 0 {
		a.Tag, a.Mark = `W/"1"`, `"1"`
	}
	return a
}

// withRoom makes the order route demand the pass of a room.
func withRoom(o *Options) {
	o.Routes = slices.Clone(o.Routes)
	o.Routes[0].Room, o.Rooms = "rush", map[string]Room{"rush": &closedRoom{}}
}

// withOrderToken makes the order route demand a token.
func withOrderToken(o *Options) {
	o.Routes = slices.Clone(o.Routes)
	o.Routes[0].OrderToken = true
	o.Auth = auth.VerifierOptions{OrderTokenKey: strings.Repeat("k", 32), Slot: time.Minute}
}

func addTokenAndRateCases(add addCase) {
	add(&waitingRoom, reject.Room, "", withRoom)
	add(&waitingRoom, reject.Ambiguous, orderWith("Cookie", "Sluice-Pass: a\r\nSluice-Pass: b\r\nCookie"), withRoom)
	add(&orderToken, reject.Token, "", withOrderToken)
	add(&orderToken, reject.Ambiguous, orderWith("Cookie", "Sluice-Token: a\r\nSluice-Token: b\r\nCookie"), withOrderToken)
	rate := func(key string) func(*Options) {
		return func(o *Options) {
			m := exhaustedHostRate()
			m.Key = key
			o.Rates, o.Now = []Rate{m}, func() int64 { return int64(time.Hour) }
		}
	}
	add(&keyedRates, reject.Rate, "", rate("$host"))
	add(&keyedRates, reject.Ambiguous, orderWith("/order", "/order?q=1&q=2"), rate("$arg_q"))
	add(&keyedRates, reject.BadRequest, orderWith("/order", "/order?q=%ff"), rate("$arg_q"))
	inFlightBy := func(key string, late bool) func(*Options) {
		return func(o *Options) {
			m, counter := together("two", 2)
			full(counter, 2)
			if m.Key = key; late {
				m.Limiter = lateFull{counter}
			}
			o.InFlight = []InFlight{m}
		}
	}
	add(&inFlight, reject.InFlight, "", inFlightBy("$cookie_uid", false))
	add(&inFlight, reject.Ambiguous, orderWith("/order", "/order?q=1&q=2"), inFlightBy("$arg_q", false))
	add(&inFlight, reject.BadRequest, orderWith("/order", "/order?q=%ff"), inFlightBy("$arg_q", false))
	add(&inFlight, reject.InFlight, "", inFlightBy("$cookie_uid", true))
}

// addWaitingCases adds those of the checks that wait for another request, a window or a slot.
func addWaitingCases(add addCase) {
	for outcome, reason := range map[upstream.Outcome]reject.Reason{
		upstream.NotSent: reject.NoUpstream, upstream.Broken: reject.UpstreamError,
		upstream.TimedOut: reject.UpstreamTimeout, upstream.Busy: reject.UpstreamBusy,
	} {
		add(&pageCache, reason, search, func(o *Options) {
			o.Routes[1].Cache, o.Cache = time.Second, fakeCache{CacheError, outcome}
		})
	}
	add(&window, reject.Window, "", func(o *Options) { o.Windows = fullWindow{} })
	add(&slot, reject.Concurrency, "", func(o *Options) { o.Concurrency = fullQueue{} })
	add(&window, reject.Window, "", func(o *Options) {
		o.Windows = windowFunc(func(int64, []byte) (time.Duration, bool) { return 0, false })
	})
	for _, reason := range []reject.Reason{reject.Concurrency, reject.QueueTimeout, reject.ClientGone} {
		add(&slot, reason, "", func(o *Options) { o.Concurrency = slotFunc(always(reason)) }) // see Acquire
	}
}

// addReservationCases adds those of the ledger: the reasons that Orders has, from memory and from its store.
func addReservationCases(add addCase) {
	for _, reason := range ledgerMemory.reasons {
		add(&ledgerMemory, reason, buying, func(o *Options) { ordersDecide(o, reason, true) })
		add(&storedOrder, reason, buying, func(o *Options) {
			ordersDecide(o, reason, false)
			o.Orders.(*fakeOrders).lookUp = true
		})
		add(&waitingRoom, reason, buying, func(o *Options) {
			ordersDecide(o, reason, false)
			o.Orders.(*fakeOrders).lookUp = true
			o.Routes[0].Room, o.Rooms = "rush", map[string]Room{"rush": &closedRoom{over: true}}
		})
	}
	add(&connection, reject.UpstreamBusy, buying, func(o *Options) {
		ordersDecide(o, reject.Admitted, false)
		o.Upstream = crowded{}
	})
	for _, reason := range reserve.reasons {
		add(&reserve, reason, buying, func(o *Options) { ordersDecide(o, reason, false) })
	}
}

func ordersDecide(o *Options, reason reject.Reason, decided bool) {
	with, ledger := reserving(o.Upstream)
	*o = with
	ledger.answer.Reason, ledger.decided = reason, decided
}

// lateFeedback says that every SKU is sold out, after so many calls.
type lateFeedback struct{ after int }

func (f *lateFeedback) SoldOut(int64, []byte) bool { f.after--; return f.after < 0 }
func (*lateFeedback) Record(int64, []byte, bool)   {}
