// Package admin is what operators and their machines ask a running gate: is it alive, is it ready, what did it count,
// what is the stock, what became of an order. It promises that nothing here is on the way of a shopper's request, that
// what changes something needs a token or a caller on this very machine, and that the log then says who changed what.
//
// It does not decide what is unknown: a reservation is confirmed, released or refunded when an operator says so.
package admin

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is one condition of readiness.
type Check struct {
	Name  string
	Probe func() (detail string, health Health) // quick; detail is for people
}

// Health is what one condition, or all of them, come to.
type Health uint8

const (
	Healthy  Health = iota
	Degraded        // ready, but a part fails: an operator must look
	Unready
)

// Ops serves what needs no secret: /livez, /readyz and /metrics. Rejecting shoppers is never "not ready".
func Ops(checks []Check, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { ready(w, r, checks) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusNotFound, "here are /livez, /readyz, /metrics; the dashboard and the API are at admin.listen\n")
	})
	return mux
}

// ready answers 200 unless a check says Unready: "ready", or "degraded" with the checks that say so, or 503 "not
// ready". With ?verbose each check is a line of its own.
func ready(w http.ResponseWriter, r *http.Request, checks []Check) {
	worst := Healthy
	var all, faults strings.Builder
	for _, c := range checks {
		detail, health := c.Probe()
		worst = max(worst, health)
		fmt.Fprintf(&all, "%s %s: %s\n", [...]string{"ok  ", "WARN", "FAIL"}[health], c.Name, detail)
		if health != Healthy {
			fmt.Fprintf(&faults, "; %s: %s", c.Name, detail)
		}
	}
	status := http.StatusOK
	if worst == Unready {
		status = http.StatusServiceUnavailable
	}
	verdict := [...]string{"ready", "degraded", "not ready"}[worst]
	if r.URL.Query().Has("verbose") {
		plain(w, status, all.String()+verdict+"\n")
		return
	}
	plain(w, status, verdict+faults.String()+"\n")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that has gone needs no answer
}
