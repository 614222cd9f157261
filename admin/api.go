package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"

	"sluice/proxy"
)

// API is the control API, /api/v1, and the profiles of /debug/pprof/. Without a token it answers callers on this machine alone.
type API struct {
	Store   Store                                // of the shop's own layout; nil = no route looks at it, or stock is off
	Ledgers Ledgers                              // of the gate; nil = no route has reserved
	Loudest func(n int) []proxy.Loud             // the keys that limits refuse most; nil = not known
	Why     func(q Question, most int) Decisions // what became of requests; nil = nothing is remembered
	Sales   Sales                                // nil = none are known
	Token   string                               // "" = none is asked for
	Log     *slog.Logger

	LayoutFirst bool // who does not say which stock means the shop's own: no route reserves any more
}

// Handler serves the API.
func (a *API) Handler() http.Handler {
	mux, line := http.NewServeMux(), newTurns()
	mux.HandleFunc("GET /api/v1/stock", line.handler(a.kept(a.list, a.listLedgers)))
	mux.HandleFunc("GET /api/v1/stock/{sku}", line.handler(a.kept(a.read, a.readLedger)))
	mux.HandleFunc("POST /api/v1/stock/{sku}", line.handler(a.kept(a.change, a.changeLedger)))
	mux.HandleFunc("POST /api/v1/stock/{sku}/adopt", line.handler(a.reserved(a.adoptAll)))
	mux.HandleFunc("GET /api/v1/reservations", line.handler(a.reserved(a.reservations)))
	mux.HandleFunc("GET /api/v1/reservations/{serial}", line.handler(a.reserved(a.reservation)))
	for _, op := range []string{"confirm", "release", "refund"} {
		mux.HandleFunc("POST /api/v1/reservations/{serial}/"+op, line.handler(a.reserved(a.settle(op))))
	}
	mux.HandleFunc("POST /api/v1/reservations/{serial}/adopt", line.handler(a.reserved(a.adopt)))
	mux.HandleFunc("GET /api/v1/sales", a.listSales)
	mux.HandleFunc("POST /api/v1/sales/{name}", line.handler(a.changeSale))
	mux.HandleFunc("GET /api/v1/loudest", a.loudest)
	mux.HandleFunc("GET /api/v1/why", line.handler(a.why))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	origins := http.NewCrossOriginProtection()
	origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusForbidden, "pages of other origins are not answered")
	}))
	return a.authorized(origins.Handler(mux))
}

// authorized lets in who has the token; without one, who calls from this machine, by its own name: a page in the
// operator's browser that some other name was pointed at is not that.
func (a *API) authorized(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(a.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.Token == "" {
			if !fromHere(r) || !localName(r.Host) {
				fail(w, http.StatusForbidden, "without admin.token_file only callers on this machine are answered")
				return
			}
			next.ServeHTTP(w, r)
			return
		}
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		ok := strings.EqualFold(scheme, "Bearer") // RFC 9110, section 11.1
		if got := sha256.Sum256([]byte(given)); !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			a.Log.Warn("admin: wrong token", "from", r.RemoteAddr)
			w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
			fail(w, http.StatusUnauthorized, "a valid token is needed: Authorization: Bearer …")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromHere reports a caller on this machine: over loopback, or over a unix socket, whose other end has no address.
func fromHere(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return at != nil && at.Network() == "unix" || loopback(r.RemoteAddr)
}

func loopback(hostport string) bool {
	ap, err := netip.ParseAddrPort(hostport)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}

func localName(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// fault answers an error with the status that it means: of the store itself, if nothing else.
func (a *API) fault(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, ErrNoSKU), errors.Is(err, errNoSerial):
		status = http.StatusNotFound
	case errors.Is(err, ErrInvalid):
		status = http.StatusBadRequest
	case errors.Is(err, ErrRefused):
		status = http.StatusConflict
	}
	fail(w, status, err.Error())
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// fail is application/problem+json (RFC 9457).
func fail(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
}
