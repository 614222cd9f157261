package doctor

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"sluice/config"
)

// sizeWindows says in requests a second what the windows admit, of one instance and of all.
func (o *Report) sizeWindows(c *config.Config) {
	window, crew := c.Limits.Window, c.Fleet
	whose := "this instance"
	if window.Scope == "fleet" {
		whose = "all instances together"
	}
	o.Info("window", "%s of %s: all SKUs %s, one SKU %s; a burst across a boundary may reach twice a window's",
		window.Size, whose, perSecond(window.Max, window.Size), perSecond(window.MaxPerSKU, window.Size))
	counts := []int{2, 3}
	if crew.Instances > 0 {
		counts = []int{crew.Instances}
	}
	switch {
	case window.Scope == "fleet" && crew.Instances == 0:
		o.Info("fleet", "%q: instances are counted by heartbeats in Redis, at %s; one that starts admits nothing until it "+
			"is counted, at most some 3s", c.Name, c.Stock.Redis.Addresses[0])
	case window.Scope != "fleet" && crew.Instances == 0:
		o.Info("fleet", "each instance has all of that: n of them admit n times as much; limits.window.scope = \"fleet\" "+
			"divides it")
	}
	for _, n := range counts {
		if window.Scope == "fleet" {
			o.Info("fleet", "each of %d: all SKUs %s, one SKU %s", n, partOf(window.Max, n, window.Size),
				partOf(window.MaxPerSKU, n, window.Size))
		} else if crew.Instances > 0 {
			o.Info("fleet", "%d instances together: all SKUs %s, one SKU %s", n, perSecond(n*window.Max, window.Size),
				perSecond(n*window.MaxPerSKU, window.Size))
		}
	}
	if window.WarmUp > 0 {
		o.Info("warm-up", "a tenth of that at a SKU's first admission, and after 10m without one; the whole after %s",
			window.WarmUp)
	}
}

func perSecond(perWindow int, size time.Duration) string {
	if perWindow == 0 {
		return "no cap"
	}
	return fmt.Sprintf("%d a window = %d/s", perWindow, int64(perWindow)*int64(time.Second)/int64(size))
}

// partOf is what falls to one of n instances: where it does not come out even, more and less in turn.
func partOf(perWindow, n int, size time.Duration) string {
	if perWindow == 0 {
		return "no cap"
	}
	part := fmt.Sprint(perWindow / n)
	if perWindow%n != 0 {
		part += fmt.Sprintf(" or %d", perWindow/n+1)
	}
	perSecond := float64(perWindow) * float64(time.Second) / float64(size) / float64(n)
	return fmt.Sprintf("%s a window = %s/s", part, strconv.FormatFloat(math.Round(perSecond*10)/10, 'f', -1, 64))
}

// sizeInFlight says in numbers what the limits inside the shop amount to.
func (o *Report) sizeInFlight(c *config.Config) {
	limit := c.Limits.Concurrency
	if limit.Adaptive {
		o.Info("adaptive", "from %d to %d, by the shop's latency", limit.MinInFlight(), limit.MaxInFlight)
	}
	for _, r := range c.Routes {
		switch {
		case r.MaxInFlight > limit.MaxInFlight:
			o.Warn("in flight", "route %q: max_in_flight %d is more than limits.concurrency.max_in_flight "+
				"allows for all: %d", r.Name, r.MaxInFlight, limit.MaxInFlight)
		case r.MaxInFlight > 0:
			o.Info("in flight", "at most %d of route %q", r.MaxInFlight, r.Name)
		}
	}
	connections := c.Upstream.MaxConns - c.Upstream.MaxConns/8 // see upstream.Options
	targets := max(1, len(c.Upstream.Targets))
	per, queued := limit.MaxInFlight/targets, 0
	if c.Queues() && c.Queue.Pull == 0 {
		queued = (limit.MaxInFlight + c.Queue.MaxInFlight) / targets
	}
	switch {
	case per > connections:
		o.Warn("in flight", "limits.concurrency.max_in_flight allows %d requests a target, but upstream.max_conns "+
			"leaves only %d connections beside those for pages: the rest wait, and are rejected as upstream_busy", per,
			connections)
	case queued > connections:
		o.Warn("in flight", "limits.concurrency.max_in_flight and queue.max_in_flight together allow %d requests a target, "+
			"but upstream.max_conns leaves only %d connections beside those for pages: orders that find none slow the queue "+
			"down", queued, connections)
	}
}

// sizeRates says in numbers what the keyed rates amount to.
func (o *Report) sizeRates(c *config.Config) {
	for _, r := range c.Limits.Rates {
		more := ""
		if !c.Limits.Enforced(r.Name) {
			more = "; only observed"
		}
		if r.MaxDelay > 0 {
			more += fmt.Sprintf("; requests beyond the burst wait, at most %v", r.MaxDelay)
		}
		for _, other := range r.RateOverrides() {
			if other.Rate == 0 {
				more += fmt.Sprintf("; %q is not counted", other.Pattern)
			} else {
				more += fmt.Sprintf("; %q has %.3g/s, burst %d", other.Pattern, float64(other.Rate), other.Burst)
			}
		}
		o.Info("rate", "%s: %.3g/s of each %s, burst %d; %d keys in %.1f MiB%s", r.Name, float64(r.Rate), r.Key, r.Burst,
			r.MaxKeys, float64(rateBytes(&r))/(1<<20), more)
	}
}

// sizeInFlightOfKeys says in numbers what the limits in flight amount to.
func (o *Report) sizeInFlightOfKeys(c *config.Config) {
	for _, l := range c.Limits.InFlight {
		more := ""
		if !c.Limits.Enforced(l.Name) {
			more = "; only observed"
		}
		o.Info("in flight", "%s: %d of each %s%s", l.Name, l.Max, l.Key, more)
	}
}

// checkFleetSecret says whether one instance can change the others.
func (o *Report) checkFleetSecret(c *config.Config) {
	if c.Stock.Reserve.Secret != "" {
		o.Info("fleet", "overrides and drains of all instances are signed with stock.reserve.secret_file; an entry in Redis "+
			"without the signature is ignored")
		return
	}
	o.Info("fleet", "stock.reserve.secret_file is empty: of several instances no override and no drain --fleet is taken, "+
		"since any program that can write to Redis could make them; change each with --instance, or name a file, the same "+
		"on all")
}
