package tracing

import (
	"time"

	"sluice/proxy"
)

// told is what is kept of a request until the collector hears of it.
type told struct {
	proxy.Trace
	came, decided, answered, done time.Time

	method, path, id, sku string // copies
	route, target         string
	gate                  proxy.Gate
	reason                proxy.Reason
	outcome               proxy.Outcome
	status                int
	sent                  bool
}

// keep copies what lasts for no longer than the request. now is e.Done by the clock on the wall.
func keep(t proxy.Trace, e proxy.Entry, now time.Time) told {
	at := func(ns int64) time.Time { return now.Add(time.Duration(ns - e.Done)) }
	return told{
		Trace: t, came: at(e.Came), decided: at(e.Decided), answered: at(e.Answered), done: now,
		method: string(e.Method), path: string(e.Path), id: string(e.ID), sku: string(e.SKU),
		route: e.Route, target: e.Target, gate: e.Gate, reason: e.Reason, outcome: e.Outcome, status: e.Status, sent: e.Sent,
	}
}
