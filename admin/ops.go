// Package admin is what operators and their machines ask a running gate: is it alive, is it ready, what did it count,
// what is the stock, what became of an order. It promises that nothing here is on the way of a shopper's request, that
// what changes something needs a token or a caller on this very machine, and that the log then says who changed what.
//
// It refuses to decide what is unknown: a reservation is confirmed, released or refunded when somebody says so.
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
	Probe func() (detail string, ok bool) // quick; detail is for people
}

// Ops serves what needs no secret: /livez, /readyz and /metrics. Refusing shoppers is never "not ready".
func Ops(checks []Check, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { ready(w, r, checks) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// ready answers 200 when every check passes, else 503. With ?verbose each is a line of its own.
func ready(w http.ResponseWriter, r *http.Request, checks []Check) {
	status, verdict := http.StatusOK, "ready"
	var lines strings.Builder
	for _, c := range checks {
		detail, ok := c.Probe()
		mark := "ok  "
		if !ok {
			mark, status, verdict = "FAIL", http.StatusServiceUnavailable, "not ready"
		}
		fmt.Fprintf(&lines, "%s %s: %s\n", mark, c.Name, detail)
	}
	if r.URL.Query().Has("verbose") {
		plain(w, status, lines.String()+verdict+"\n")
		return
	}
	plain(w, status, verdict+"\n")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that has gone needs no answer
}
