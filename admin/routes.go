package admin

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"
)

// route is one request that is answered.
type route struct {
	method, path string // the path as http.ServeMux has it
	handler      handler
}

// routes are all of them. What is under /api/v1 stands in openapi.yaml, and a test wants both to be the same.
func (a *API) routes() []route {
	line, consumers := newRequestSlots(), newRequestSlots()
	all := []route{
		{"GET", "/api/v1/status", a.gated(a.status)},
		{"GET", "/api/v1/sales", a.listSales},
		{"POST", "/api/v1/sales/{name}", line.handler(a.changeSale)},
		{"GET", "/api/v1/rooms", a.listRooms},
		{"POST", "/api/v1/rooms/{name}", line.handler(a.changeRoom)},
		{"GET", "/api/v1/queue", a.queueState},
		{"POST", "/api/v1/queue/take", consumers.handler(a.takeQueued)},
		{"POST", "/api/v1/queue/settle", consumers.handler(a.settleQueued)},
		{"GET", "/api/v1/settlement", a.listSettlements},
		{"GET", "/api/v1/limits", a.gated(a.limits)},
		{"GET", "/api/v1/targets", a.gated(a.targets)},
		{"GET", "/api/v1/limits/{name}/key", a.gated(line.handler(a.limitKey))},
		{"DELETE", "/api/v1/limits/{name}/key", a.gated(line.handler(a.limitKey))},
		{"GET", "/api/v1/fleet", a.gated(line.handler(a.fleet))},
		{"GET", "/api/v1/config", a.gated(a.settings)},
		{"POST", "/api/v1/reload", a.gated(line.handler(a.reload))},
		{"POST", "/api/v1/drain", a.gated(a.drain)},
		{"GET", "/api/v1/overrides", a.gated(a.overrides)},
		{"POST", "/api/v1/overrides", a.gated(line.handler(a.setOverride))},
		{"GET", "/api/v1/overrides/{id}", a.gated(a.override)},
		{"DELETE", "/api/v1/overrides/{id}", a.gated(line.handler(a.undo))},
		{"GET", "/api/v1/history", a.gated(a.history)},
		{"GET", "/api/v1/events", a.gated(a.events)},
		{"GET", "/api/v1/audit", a.audit},
		{"GET", "/api/v1/preflight", a.preflight},
		{"GET", "/api/v1/report", a.gated(line.handler(a.report))},
		{"GET", "/api/v1/openapi.yaml", byItself(described)},

		{"GET", "/api/v1/stock", line.handler(a.kept(a.list, a.listLedgers))},
		{"GET", "/api/v1/stock/{sku}", line.handler(a.kept(a.read, a.readLedger))},
		{"POST", "/api/v1/stock/{sku}", line.handler(a.kept(a.change, a.changeLedger))},
		{"POST", "/api/v1/stock/{sku}/recover", line.handler(a.reserved(a.recover))},
		{"GET", "/api/v1/reservations", line.handler(a.reserved(a.reservations))},
		{"GET", "/api/v1/reservations/{serial}", line.handler(a.reserved(a.reservation))},
		{"GET", "/api/v1/top-keys", a.topKeys},
		{"GET", "/api/v1/why", line.handler(a.why)},

		{"GET", "/debug/pprof/", byItself(pprof.Index)},
		{"GET", "/debug/pprof/profile", byItself(pprof.Profile)},
		{"GET", "/debug/pprof/trace", byItself(pprof.Trace)},
	}
	for _, op := range []string{"confirm", "release", "refund", "requeue"} {
		all = append(all, route{"POST", "/api/v1/reservations/{serial}/" + op, line.handler(a.reserved(a.settleHandler(op)))})
	}
	return all
}

// byItself is a handler that answers by itself.
func byItself(serve http.HandlerFunc) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		serve(w, r)
		return nil, nil
	}
}

// elsewhere answers what no route takes: 405 where the path is one for another method, else 404 with what there is.
func (a *API) elsewhere(mux *http.ServeMux) http.HandlerFunc {
	var paths []string
	for _, r := range a.routes() {
		if path, ok := strings.CutPrefix(r.path, "/api/v1/"); ok && r.method == http.MethodGet {
			paths = append(paths, path)
		}
	}
	there := strings.Join(paths, ", ")
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
			asked := *r
			asked.Method = method
			if _, pattern := mux.Handler(&asked); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
			}
		}
		if len(allowed) == 0 {
			fail(w, http.StatusNotFound, "there is no such path; ops.listen has /livez, /readyz and "+
				"/metrics, here are / and, under /api/v1/, "+there)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		fail(w, http.StatusMethodNotAllowed, fmt.Sprintf("%.20s is not for this path; there are %s", r.Method,
			strings.Join(allowed, ", ")))
	}
}

//go:embed openapi.yaml
var description string

// described answers with the description of the API in OpenAPI 3.1.
func described(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, description) // a client that has gone needs no answer
}

// The store has connections for the sale's orders; requests of operators and of the shop share a few of them, however
// many come at once.
const (
	atOnce   = 4
	turnWait = 5 * time.Second // the longest line is served well within it
)

// requestSlots lets a few requests at a time reach the store, in no order; the others wait.
type requestSlots chan struct{}

func newRequestSlots() requestSlots { return make(requestSlots, atOnce) }

func (t requestSlots) handler(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		readBody(r)
		ctx, cancel := context.WithTimeout(r.Context(), turnWait)
		defer cancel()
		select {
		case t <- struct{}{}:
			defer func() { <-t }()
			return next(w, r)
		case <-ctx.Done():
			w.Header().Set("Retry-After", "1")
			return nil, statusError{http.StatusServiceUnavailable,
				"too many requests to the control API at once; nothing was done: come back"}
		}
	}
}

// readBody waits for what a request says, all but of a long list: a request has no slot while its connection is slow.
func readBody(r *http.Request) {
	body := r.Body
	first, _ := io.ReadAll(io.LimitReader(body, maxBody)) // who reads on meets the error again
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), body), body}
}
