package loadtest

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Advice is a key, its number, what it could be, and why.
type Advice struct {
	Key   string `json:"key"` // "" = about the load test itself
	Is    string `json:"is,omitempty"`
	Could string `json:"could,omitempty"`
	Text  string `json:"text"`
}

// What makes a figure worth a word.
const (
	mostlyFull = 0.5  // of the windows while it was sold
	idle       = 0.85 // the shop worked less than this part of what it could
)

// advise says what follows from the figures, the most important first.
func advise(r *Result, l Limits) []Advice {
	a := adviser{r: r, l: l}
	a.crowd()
	a.pace()
	a.inFlight()
	a.tries()
	a.redis()
	a.outcomes()
	a.rates()
	a.connections()
	a.unsold()
	if len(a.all) == 0 {
		a.addRow("", "", "", "Nothing of this configuration stood in the way: the shop worked at %.0f %% of what it could "+
			"while it sold, and what was rejected had to be.", 100*r.Shop.Busy)
	}
	return a.all
}

type adviser struct {
	r   *Result
	l   Limits
	all []Advice
}

func (a *adviser) addRow(key, is, could, format string, args ...any) {
	a.all = append(a.all, Advice{key, is, could, fmt.Sprintf(format, args...)})
}

// crowd tells when the figures are those of this machine rather than of the gate.
func (a *adviser) crowd() {
	if n := a.r.Shop.Unwritten; n > 0 {
		a.addRow("", "", "", "The stand-in could not take %d of its %d units off the stock in Redis: the gateway read more "+
			"than there was, and these figures are not those of a sale.", n, a.r.Shop.Orders)
	}
	c := a.r.Crowd
	if !c.Saturated {
		return
	}
	if waiting := a.l.InFlight + a.l.Queue; c.Connections <= waiting {
		a.addRow("--connections", strconv.Itoa(c.Connections), strconv.Itoa(waiting+512), "The gateway lets %d requests "+
			"wait, and the crowd has %d connections: 1 of 100 requests was sent %.0f ms late or more. Ask for more by "+
			"--connections.",
			waiting, c.Connections, c.Late.P99)
		return
	}
	a.addRow("", "", "", "This machine makes the crowd and runs the gateway, and could not do both: 1 of 100 requests "+
		"was sent %.0f ms late or more, and never more than %d in a second. A real crowd comes sooner than that. What the "+
		"gateway did is as it is told here; what it could do is not to be seen on this machine.", c.Late.P99, c.PeakPerS)
	if used := a.r.CPU.Used / max(a.r.Took, 0.001); used < 0.7*float64(a.r.CPU.Cores) {
		a.addRow("", "", "",
			"Of %d cores the load test had %.1f: others use this machine, and the figures are theirs as well.", a.r.CPU.Cores,
			used)
	}
}

// shopRate is what the shop can sell a second, as it was measured.
func (a *adviser) shopRate() float64 {
	if a.r.Shop.Works.P50 == 0 {
		return 0
	}
	return float64(a.r.Shop.Capacity) * 1e3 / a.r.Shop.Works.P50
}

// window is the cap that binds, and its key; 0 = there is none.
func (a *adviser) window() (per int, key string) {
	switch {
	case a.l.MaxPerSKU > 0 && (a.l.Max == 0 || a.l.MaxPerSKU <= a.l.Max):
		return a.l.MaxPerSKU, "limits.window.max_per_sku"
	case a.l.Max > 0:
		return a.l.Max, "limits.window.max"
	}
	return 0, ""
}

func (a *adviser) windowRate(per int) float64 { return float64(per) / a.l.Window.Seconds() }

// inFlightRate is what may be sold a second with so many in flight (Little's law).
func (a *adviser) inFlightRate(n int) float64 {
	if n == 0 || a.r.Shop.Works.P50 == 0 {
		return math.Inf(1)
	}
	return float64(n) * 1e3 / a.r.Shop.Works.P50
}

// wouldTake is when all would be sold at another pace.
func (a *adviser) wouldTake(perSecond float64) float64 {
	return a.r.FirstUnit + float64(a.r.Units)/perSecond
}

// paced tells whether it was sold at this pace, about: then it is what decided, and not something else.
func (a *adviser) paced(perSecond float64) bool {
	return a.r.LastUnit-a.r.FirstUnit < 1.4*float64(a.r.Units)/perSecond
}

// pace says whether windows keep the shop waiting, or let more in than it can work on.
func (a *adviser) pace() {
	per, key := a.window()
	shop := a.shopRate()
	if per == 0 || shop == 0 || !a.r.SoldOut {
		return
	}
	could := int(shop * a.l.Window.Seconds())
	if a.r.windows > mostlyFull && a.paced(a.windowRate(per)) && a.r.Shop.Busy < idle && could > per {
		pace := min(shop, a.windowRate(could), a.inFlightRate(a.l.InFlight))
		if would := a.wouldTake(pace); would < 0.95*a.r.LastUnit {
			a.addRow(key, strconv.Itoa(per), strconv.Itoa(could),
				"%s = %d starves the shop: it could take %d in each %s, and worked at %.0f %% of what it can. With %d sold out "+
					"would come after %.1f s instead of %.1f s.",
				key, per, could, a.l.Window, 100*a.r.Shop.Busy, could, would, a.r.LastUnit)
		}
	}
}

// inFlight compares the places of the gate with those of the shop.
func (a *adviser) inFlight() {
	s, limit := a.r.Shop, a.l.InFlight
	if limit == 0 {
		return
	}
	fits := max(1, int(min(a.shopRate(), a.inFlightRate(limit))*a.l.Window.Seconds()))
	waited := a.r.Rejected["concurrency"] + a.r.Rejected["queue_timeout"]
	switch {
	case a.r.SoldOut && s.PeakInFlight >= int64(limit) && limit < s.Capacity && s.Busy < idle &&
		a.paced(a.inFlightRate(limit)):
		if pace := min(a.inFlightRate(s.Capacity), a.paceOfWindow()); a.wouldTake(pace) < 0.95*a.r.LastUnit {
			a.addRow(a.l.InFlightKey, strconv.Itoa(limit), strconv.Itoa(s.Capacity),
				"%s = %d starves the shop: it works on %d at a time. With %d sold out would come after %.1f s instead of %.1f s.",
				a.l.InFlightKey, limit, s.Capacity, s.Capacity, a.wouldTake(pace), a.r.LastUnit)
		}
	case s.PeakInFlight > int64(s.Capacity) && s.Waits.P99 > s.Works.P50:
		a.addRow(a.l.InFlightKey, strconv.Itoa(limit), strconv.Itoa(s.Capacity),
			"%s = %d lets more into the shop than it works on: %d were in it at the worst moment, and 1 of 100 waited %.0f ms "+
				"or more there. With %d they wait in the gateway, which can tell them so.",
			a.l.InFlightKey, limit, s.PeakInFlight, s.Waits.P99, s.Capacity)
	}
	if per, key := a.window(); waited > a.r.Requests/10 && s.PeakInFlight >= int64(limit) && per > fits {
		a.addRow(key, strconv.Itoa(per), strconv.Itoa(fits),
			"%d requests passed the window and then found no place within %s: %s = %d admits more than %d places work off. %d "+
				"would reject them sooner, and without a wait.",
			waited, a.l.QueueTimeout, key, per, limit, fits)
	}
}

func (a *adviser) paceOfWindow() float64 {
	if per, _ := a.window(); per > 0 {
		return a.windowRate(per)
	}
	return math.Inf(1)
}

// tries compares what the shop was asked for with what it could sell.
func (a *adviser) tries() {
	if extra := a.r.Shop.Requests - a.r.Units - a.r.Shop.Failed; a.l.Checks && a.l.PerUnit == 0 &&
		extra > max(20, a.r.Units/5) {
		a.addRow("stock.max_in_flight_per_unit", "0", "2",
			"The shop was asked %d times for %d units: stock.max_in_flight_per_unit = 2 bounds the "+
				"orders in flight by what is left, and spares it most of the %d in vain.",
			a.r.Shop.Requests, a.r.Units, extra)
	}
}

// slow is a round trip to Redis that shows in an answer, in ms.
const slow = 10

func (a *adviser) redis() {
	if c := a.r.Redis.Command; c.Count > 0 && c.P99 > slow && !a.r.Crowd.Saturated {
		a.addRow("stock.redis", "", "", "A command of Redis took %.1f ms (p50) and %.1f ms (p99), its way and the "+
			"machine's turns included: every reservation and every reading waits for that. Redis belongs near the gateway, on "+
			"a core of its own.", c.P50, c.P99)
	}
}

// outcomes are orders without a known outcome.
func (a *adviser) outcomes() {
	if held := a.held(); a.l.Reserves && held > 0 && a.l.StatusURL == "" {
		a.addRow("stock.reserve.status_url", `""`, "", "%d units stay held: the shop answered %d orders with 500, and "+
			"without stock.reserve.status_url their existence cannot be asked for. They are decided by hand, or never sold.",
			held, a.r.Shop.Failed)
	}
	worst := time.Duration((a.r.Shop.Works.P99 + a.r.Shop.Waits.P99) * 1e6)
	if a.l.ResponseTimeout > 0 && worst > a.l.ResponseTimeout/2 {
		a.addRow("upstream.response_header_timeout", a.l.ResponseTimeout.String(), "",
			"1 of 100 orders takes the shop %s or "+
				"more, its own line included, and upstream.response_header_timeout is %s: later ones are unknown, and keep their "+
				"unit.",
			worst.Round(time.Millisecond), a.l.ResponseTimeout)
	}
}

func (a *adviser) held() int64 {
	if a.r.Ledger == nil || !a.r.Ledger.Own {
		return 0
	}
	return a.r.Ledger.Held
}

// rates are those that a crowd of honest people ran into.
func (a *adviser) rates() {
	if n := a.r.Rejected["rate"]; n > a.r.Requests/100 {
		a.addRow("limits.rate", "", "", "limits.rate rejected %d of %d requests, of buyers who press once and come back "+
			"when they are told to, from %d addresses: it is too strict for them, or counts many as one.", n, a.r.Requests,
			a.r.Addresses)
	}
}

// connections is arithmetic: the crowd of a load test comes over few.
func (a *adviser) connections() {
	if !a.l.Trusts && a.l.MaxOpen > 0 && a.r.Buyers > a.l.MaxOpen {
		a.addRow("limits.connection.max_connections", strconv.Itoa(a.l.MaxOpen), strconv.Itoa(a.r.Buyers),
			"limits.connection.max_connections = %d on each instance: of %d buyers with a connection each the rest gets "+
				"conn_open, "+
				"unless a proxy in front carries them on fewer (server.trusted_proxies is empty).", a.l.MaxOpen, a.r.Buyers)
	}
}

// unsold says why units are left.
func (a *adviser) unsold() {
	left := a.r.Units - a.r.Shop.Orders
	if left <= 0 || a.r.Interrupted {
		return
	}
	most, n := "", int64(0)
	for reason, count := range a.r.Rejected {
		if count > n || count == n && reason < most {
			most, n = reason, count
		}
	}
	text := fmt.Sprintf("%d of %d units were left when the last buyer went home", left, a.r.Units)
	if n > 0 {
		text += fmt.Sprintf("; most were rejected for %q (%d times)", most, n)
	}
	if a.r.Room != nil && a.r.Buyer.GaveUp > 0 {
		text += fmt.Sprintf("; %d buyers gave up, and the room publishes a call some seconds before a pass can be claimed: "+
			"raise --patience", a.r.Buyer.GaveUp)
	}
	a.addRow("", "", "", "%s.", strings.TrimSpace(text))
}
