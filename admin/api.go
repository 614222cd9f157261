package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"sluice/config"
	"sluice/proxy/metrics"
)

// API is the control API, /api/v1, and the profiles of /debug/pprof/. Without a token it answers callers on this
// machine alone.
type API struct {
	Gate       Gate       // nil = none runs here: only Redis is behind the API
	Controller Controller // of Gate
	History    *History   // of Gate
	// of the shop's own layout; nil = no route looks at it, or stock is off
	Store   Store
	Ledgers Ledgers                              // of the gate; nil = no route has reserved
	TopKeys func(n int) []metrics.TopKey         // the keys that limits reject most; nil = not known
	Why     func(q Question, most int) Decisions // what became of requests; nil = nothing is remembered
	Sales   Sales                                // nil = none are known
	Rooms   Rooms                                // nil = there are none
	Queue   Queue                                // nil = no order waits

	Settlements func(context.Context) ([]Settlement, error) // nil = nothing is settled

	Token string // of operators; "" = none is asked for
	Log   *slog.Logger

	ViewerToken   string         // of those who may look; "" = there are none
	ConsumerToken string         // of those who take orders that wait; likewise
	Login         *LoginThrottle // nil = one of this handler's own
	AuditLog      *AuditLog      // likewise

	Dashboard *Dashboard // nil = none is served
	Preflight *Preflight // nil = nothing can be checked from here

	LayoutFirst bool // who does not say which stock means the shop's own: no route reserves any more
}

// Handler serves the API.
func (a *API) Handler() http.Handler {
	if a.Login == nil {
		a.Login = NewLoginThrottle()
	}
	if a.AuditLog == nil {
		a.AuditLog = NewAuditLog(a.Log)
	}
	mux := http.NewServeMux()
	for _, r := range a.routes() {
		mux.HandleFunc(r.method+" "+r.path, r.handler.serve)
	}
	mux.HandleFunc("/", a.elsewhere(mux))
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(denyOrigin))
	return a.Dashboard.Before(a.Token != "", sameOrigin(a.authorized(origins.Handler(mux))))
}

// handler answers one request with what becomes JSON, or with an error; nil and nil = it has answered by itself.
type handler func(w http.ResponseWriter, r *http.Request) (any, error)

func (h handler) serve(w http.ResponseWriter, r *http.Request) {
	v, err := h(w, r)
	switch {
	case err != nil:
		fault(w, err)
	case v != nil:
		answer(w, v)
	}
}

// statusError is an error that is answered with a status of its own.
type statusError struct {
	status int
	detail string
}

// Error implements error.
func (e statusError) Error() string { return e.detail }

// fault answers an error with the status that it means: of the store itself, if nothing else.
func fault(w http.ResponseWriter, err error) {
	status, own, bad := http.StatusBadGateway, statusError{}, (*BadFile)(nil)
	switch {
	case errors.As(err, &own):
		status = own.status
	case errors.As(err, &bad):
		failWith(w, http.StatusUnprocessableEntity, bad.Error(), bad.Problems)
		return
	case errors.Is(err, ErrNoSKU), errors.Is(err, errNoSerial), errors.Is(err, ErrNoOverride),
		errors.Is(err, ErrNotConfigured):
		status = http.StatusNotFound
	case errors.Is(err, ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, ErrConflict):
		status = http.StatusConflict
	}
	detail := err.Error()
	if status == http.StatusBadGateway {
		detail += remedy(detail)
	}
	fail(w, status, detail)
}

// orEmpty is a list as JSON has it: none is empty, and not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// fail is application/problem+json (RFC 9457).
func fail(w http.ResponseWriter, status int, detail string) { failWith(w, status, detail, nil) }

// failWith also tells what is wrong in a file.
func failWith(w http.ResponseWriter, status int, detail string, problems []config.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Title    string           `json:"title"`
		Status   int              `json:"status"`
		Detail   string           `json:"detail"`
		Problems []config.Problem `json:"problems,omitempty"`
	}{http.StatusText(status), status, detail, problems})
}
