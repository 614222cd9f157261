package admin

import (
	"context"
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

// Stock is one SKU in the API. Left is what the shop's key says.
type Stock struct {
	SKU    string `json:"sku"`
	Left   int64  `json:"left"`
	OnSale bool   `json:"on_sale"`
}

// Store is the stock that the API shows and sets.
type Store interface {
	Read(ctx context.Context, sku string) (Stock, error)
	Set(ctx context.Context, sku string, left int64) (Stock, error)
	Add(ctx context.Context, sku string, delta int64) (Stock, error)
	List(ctx context.Context, limit int) ([]Stock, error)
}

// ErrNoSKU is what a Store says of a SKU that it does not hold.
var ErrNoSKU = errors.New("no such SKU")

// ErrInvalid is what a Store says of a change that could never be made.
var ErrInvalid = errors.New("not valid")

// API is the control API, /api/v1, and the profiles of /debug/pprof/. Without a token it answers callers on this machine alone.
type API struct {
	Store   Store                    // nil = stock is off
	Loudest func(n int) []proxy.Loud // the keys that limits refuse most; nil = not known
	Token   string                   // "" = none is asked for
	Log     *slog.Logger
}

// maxList bounds how many SKUs one answer lists; maxChange how large a request may be, in bytes.
const (
	maxList   = 1000
	maxChange = 4 << 10
)

// Handler serves the API.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/stock", a.kept(a.list))
	mux.HandleFunc("GET /api/v1/stock/{sku}", a.kept(a.read))
	mux.HandleFunc("POST /api/v1/stock/{sku}", a.kept(a.change))
	mux.HandleFunc("GET /api/v1/loudest", a.loudest)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return a.authorized(http.NewCrossOriginProtection().Handler(mux))
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
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
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

// kept answers for a gate that keeps no stock.
func (a *API) kept(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if a.Store == nil {
			fail(w, http.StatusNotFound, `no stock is kept: stock.source is "off"`)
			return
		}
		next(w, r)
	}
}

func (a *API) list(w http.ResponseWriter, r *http.Request) {
	all, err := a.Store.List(r.Context(), maxList)
	if err != nil {
		a.fault(w, err)
		return
	}
	answer(w, struct {
		Stock []Stock `json:"stock"`
	}{all})
}

func (a *API) read(w http.ResponseWriter, r *http.Request) {
	s, err := a.Store.Read(r.Context(), r.PathValue("sku"))
	if err != nil {
		a.fault(w, err)
		return
	}
	answer(w, s)
}

// change sets the stock, or adds to it: {"set": 100} or {"add": -3}.
func (a *API) change(w http.ResponseWriter, r *http.Request) {
	var want struct{ Set, Add *int64 }
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxChange))
	d.DisallowUnknownFields()
	if err := d.Decode(&want); err != nil || (want.Set == nil) == (want.Add == nil) {
		fail(w, http.StatusBadRequest, `the body must be {"set": N} or {"add": N}`)
		return
	}
	sku := r.PathValue("sku")
	var now Stock
	var err error
	if want.Set != nil {
		now, err = a.Store.Set(r.Context(), sku, *want.Set)
	} else {
		now, err = a.Store.Add(r.Context(), sku, *want.Add)
	}
	if err != nil {
		a.fault(w, err)
		return
	}
	a.Log.Info("admin: stock changed", "sku", sku, "left", now.Left, "from", r.RemoteAddr)
	answer(w, now)
}

func (a *API) fault(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, ErrNoSKU):
		status = http.StatusNotFound
	case errors.Is(err, ErrInvalid):
		status = http.StatusBadRequest
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
