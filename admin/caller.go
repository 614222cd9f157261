package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// What a caller may do. A viewer looks; a consumer takes and settles orders that wait; an operator does everything.
const (
	viewer   = "viewer"
	operator = "operator"
	consumer = "consumer"
)

// caller is who asks.
type caller struct {
	role string // "viewer" "consumer" "operator"
	name string // as the caller says; it is not checked. "" = it is not said
	from string // address
}

type callerKey struct{}

// callerOf is who sent r. It was let in.
func callerOf(r *http.Request) caller {
	c, ok := r.Context().Value(callerKey{}).(caller)
	if !ok {
		c = caller{role: operator, from: r.RemoteAddr}
	}
	return c
}

// operatorHeader names the person behind a token that several share. It is for the audit alone.
const operatorHeader = "Sluice-Operator"

const maxName = 64 // bytes of it

// authorized lets in who has a token; without one, who calls from this machine, by its own name: a page in the
// operator's browser that some other name was pointed at is not that.
func (a *API) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := caller{role: operator, from: r.RemoteAddr}
		if name := r.Header.Get(operatorHeader); visible(name, maxName) {
			who.name = name
		}
		switch {
		case a.Token != "":
			if who.role = a.admitted(w, r); who.role == "" {
				return
			}
		case !isLocal(r) || !localName(r.Host) || isForwarded(r):
			fail(w, http.StatusForbidden, "without admin.token_file only callers on this machine are answered")
			return
		}
		if who.role == viewer && !viewerMay(r) {
			fail(w, http.StatusForbidden,
				"this is the token of admin.viewer_token_file: it may look under /api/v1, and change nothing")
			return
		}
		if who.role == consumer && r.URL.Path != "/api/v1/queue/take" && r.URL.Path != "/api/v1/queue/settle" {
			fail(w, http.StatusForbidden,
				"this is the token of admin.consumer_token_file: it may take and settle orders that wait, and no more")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	})
}

// sameOrigin rejects reads too, where a browser says that a page of another origin asks (Fetch Metadata): what the page
// cannot read costs the gate all the same, such as a profile, a check of Redis, or one of the few streams. Nor is an
// answer taken for a script.
func sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "none", "same-origin":
			next.ServeHTTP(w, r)
		default:
			denyOrigin(w, r)
		}
	})
}

func denyOrigin(w http.ResponseWriter, _ *http.Request) {
	fail(w, http.StatusForbidden, "pages of other origins are not answered")
}

// viewerMay reports what a viewer may ask for. A profile of the process may hold a secret.
func viewerMay(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !strings.HasPrefix(r.URL.Path, "/debug/")
}

// roleOf is the role that a token has, "" = none, found in the same time whichever it is.
func (a *API) roleOf(token string) (role string) {
	got := sha256.Sum256([]byte(token))
	for _, one := range []struct{ token, role string }{{a.ConsumerToken, consumer}, {a.ViewerToken, viewer},
		{a.Token, operator}} {
		want := sha256.Sum256([]byte(one.token))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && one.token != "" {
			role = one.role
		}
	}
	return role
}

// admitted is the role of who sent r; "" = it was answered why not.
func (a *API) admitted(w http.ResponseWriter, r *http.Request) (role string) {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || given == "" { // RFC 9110, section 11.1; nothing was guessed
		unauthorized(w)
		return ""
	}
	if role = a.roleOf(given); role != "" {
		return role
	}
	wait, telling := a.Login.Rejected(clientOf(r.RemoteAddr), time.Now())
	if telling {
		a.AuditLog.rejected(r.RemoteAddr)
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		fail(w, http.StatusTooManyRequests, "too many wrong tokens; send the right one, or another one after Retry-After")
		return ""
	}
	unauthorized(w)
	return ""
}

func unauthorized(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="sluice"`)
	fail(w, http.StatusUnauthorized, "a valid token is needed: Authorization: Bearer …")
}

// isLocal reports a caller on this machine: over loopback, or over a unix socket, whose other end has no address.
func isLocal(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return at != nil && at.Network() == "unix" || loopback(r.RemoteAddr)
}

// isForwarded reports that a proxy says of r that it sends it for another client.
func isForwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header[name]) > 0 {
			return true
		}
	}
	return false
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
