package tracing

import (
	"time"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/proxy/route"
	"sluice/upstream"
)

// record is the part of an access record that is sent to the collector.
type record struct {
	metrics.Trace
	came, decided, answered, done time.Time

	method, path, id, sku string // copies
	route, target         string
	gate                  route.Gate
	reason                reject.Reason
	outcome               upstream.Outcome
	status                int
	sent                  bool
}

// newRecord copies what belongs to the request. now is e.Done by the wall clock.
func newRecord(t metrics.Trace, e metrics.AccessRecord, now time.Time) record {
	at := func(ns int64) time.Time { return now.Add(time.Duration(ns - e.Done)) }
	return record{
		Trace: t, came: at(e.Arrived), decided: at(e.Decided), answered: at(e.Answered), done: now,
		method: string(e.Method), path: string(e.Path), id: string(e.ID), sku: string(e.SKU),
		route: e.Route, target: e.Target, gate: e.Gate, reason: e.Reason, outcome: e.Outcome, status: e.Status, sent: e.Sent,
	}
}
