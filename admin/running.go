package admin

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"sluice/config"
	"sluice/proxy/metrics"
)

// Gate is the running gate, as it tells of itself. Each answer is at once.
type Gate interface {
	Status() Status
	Limits() []Limit
	Targets() []Target
	Settings() Settings
}

// Status is the gate in a few words.
type Status struct {
	Version  string    `json:"version"`
	Host     string    `json:"host"`
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"`    // by the clock that the sales go by
	Role     string    `json:"role"`   // of who asks: "viewer" or "operator"
	Config   string    `json:"config"` // which text of it: the first 12 hex digits of its SHA-256
	Mode     string    `json:"mode"`   // "enforce" or "observe"
	Phase    string    `json:"phase"`  // "serving" or "draining"
	Ready    bool      `json:"ready"`
	Degraded bool      `json:"degraded"` // a part fails: its check says which
	Checks   []Probed  `json:"checks"`   // what Ready is made of
	Reload   Reload    `json:"reload"`

	Stock     []string   `json:"stock"`     // the kinds that GET /stock knows here: "ledger" "layout"
	Overrides []Override `json:"overrides"` // in force
	Second    *Second    `json:"second"`    // the latest; null in the first moment
}

// Probed is one condition of readiness, as it was just now.
type Probed struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`       // false: not ready
	Degraded bool   `json:"degraded"` // it fails, and the instance stays ready
	Detail   string `json:"detail"`
}

// Reload is how the last reading of the configuration went.
type Reload struct {
	At       time.Time        `json:"at"`
	OK       bool             `json:"ok"`
	Problems []config.Problem `json:"problems,omitempty"` // of a bad file: the configuration before it runs on
}

// Limit is one limit, with its numbers and what it did.
type Limit struct {
	Name        string   `json:"name"`         // of its table, such as "window", or of a keyed rate
	ObserveOnly bool     `json:"observe_only"` // counts what it would reject, and rejects nothing
	Numbers     []Number `json:"numbers"`
	Now         []Now    `json:"now"`     // what it counts at the moment
	Reasons     []string `json:"reasons"` // that it rejects for

	Rejected          int64   `json:"rejected"` // since the start
	Observed          int64   `json:"observed"` // let through, although enforcing would have rejected it
	RejectedPerSecond float64 `json:"rejected_per_second"`
	ObservedPerSecond float64 `json:"observed_per_second"`
}

// Number is one number of a limit.
type Number struct {
	Key        string `json:"key"`                // as POST /api/v1/overrides takes it
	InForce    any    `json:"in_force"`           // a number, or text with its unit
	Configured any    `json:"configured"`         // what the file says
	Override   string `json:"override,omitempty"` // ID of what makes them differ
}

// Now is one thing that a limit counts.
type Now struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Fleet is what all instances have told of themselves.
type Fleet struct {
	Name      string     `json:"name"`
	Self      string     `json:"self"` // ID of the instance that answers
	Instances []Instance `json:"instances"`
	Differ    []string   `json:"differ"` // in what they differ though they should not: "version", "config", "mode"
}

// Instance is the summary that an instance tells the others each second.
type Instance struct {
	ID       string    `json:"id"`
	Age      float64   `json:"age"` // seconds since it told this; of one that hangs or is away it grows
	Host     string    `json:"host"`
	Version  string    `json:"version"`
	Config   string    `json:"config"`
	Mode     string    `json:"mode"`
	Phase    string    `json:"phase"`
	Ready    bool      `json:"ready"`
	Degraded bool      `json:"degraded"`
	Started  time.Time `json:"started"`

	// requests of the last second
	Requests float64 `json:"requests"`
	Admitted float64 `json:"admitted"`
	Rejected float64 `json:"rejected"`
	Mostly   string  `json:"mostly,omitempty"` // the reason of most rejections

	InFlight  int      `json:"in_flight"`
	Overrides int      `json:"overrides"`       // in force there
	Unfit     []string `json:"unfit,omitempty"` // keys that are overridden for the fleet, and cannot be there; at most 5
}

// KeyState is how one key of a limit stands at one instance.
type KeyState struct {
	Instance string `json:"instance"`
	Host     string `json:"host,omitempty"`
	Fault    string `json:"fault,omitempty"`    // why nothing is known of it; the rest is empty then
	Override string `json:"override,omitempty"` // the pattern that holds for the key
	Off      bool   `json:"off,omitempty"`      // by that pattern such requests are not counted

	Left      int     `json:"left"`            // requests that may come at once
	Max       int     `json:"max"`             // of Left: the burst, or the requests in flight
	PerSecond float64 `json:"per_second"`      // 0 = a limit of requests in flight
	WaitMS    int64   `json:"wait_ms"`         // until one more may come; 0 = now
	WholeMS   int64   `json:"whole_ms"`        // until nothing of the burst is used
	InFlight  int     `json:"in_flight"`       // of a limit of requests in flight
	Reset     bool    `json:"reset,omitempty"` // it was reset just now
}

// KeyStates are those of all instances, or of one.
type KeyStates struct {
	Limit     string     `json:"limit"`
	Values    []string   `json:"values"`
	Instances []KeyState `json:"instances"`
	Missing   []string   `json:"missing"` // IDs of instances that have not answered
}

// Target is one address of the shop.
type Target struct {
	Target   string `json:"target"`
	Up       bool   `json:"up"`      // orders may go there: healthy, and not ejected
	Healthy  bool   `json:"healthy"` // passes its health checks, or has none
	Ejected  bool   `json:"ejected"` // after connect errors, and it was not reached since
	InFlight int    `json:"in_flight"`
	Open     int    `json:"open"`            // connections, idle ones included
	Idle     int    `json:"idle"`            // connections
	Fault    string `json:"fault,omitempty"` // why it cannot be used, and what to do about it
}

// Settings is the configuration as it is in force.
type Settings struct {
	File     string    `json:"file"`
	Config   string    `json:"config"`
	Settings []Setting `json:"settings"`
}

// Setting is one key of it. No secret is shown. Its Origin may also be "--mode", or "override 3".
type Setting struct {
	config.Setting
	Live bool `json:"live"` // a reload changes it; otherwise only a restart
}

// noGate is the answer where only Redis is behind the API.
const noGate = "no gateway is behind this: ask a running one, by --admin"

// gated answers for an API without a gate.
func (a *API) gated(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		if a.Gate == nil || a.Controller == nil || a.History == nil {
			return nil, statusError{http.StatusNotFound, noGate}
		}
		return next(w, r)
	}
}

func (a *API) status(w http.ResponseWriter, r *http.Request) (any, error) {
	s := a.Gate.Status()
	s.Role = callerOf(r).role
	s.Host, _ = os.Hostname() // for people alone
	s.Stock = a.kinds()
	s.Overrides = orEmpty(a.Controller.Overrides())
	s.Second = a.History.latest()
	return s, nil
}

// limits adds to what the gate tells of each limit what was counted.
func (a *API) limits(w http.ResponseWriter, _ *http.Request) (any, error) {
	all := a.Gate.Limits()
	for i := range all {
		a.History.count(&all[i])
	}
	return map[string]any{"limits": all}, nil
}

func (a *API) targets(w http.ResponseWriter, _ *http.Request) (any, error) {
	return map[string]any{"targets": a.Gate.Targets()}, nil
}

func (a *API) fleet(w http.ResponseWriter, r *http.Request) (any, error) {
	return a.Controller.Fleet(r.Context())
}

// limitKey tells how one key of a limit by key stands; DELETE resets it first. ?value= once for each variable of the
// key.
func (a *API) limitKey(w http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	scope, err := scopeOf(q.Get("scope"))
	if err == nil && (len(q["value"]) == 0 || len(q["value"]) > maxKeyValues || len(q.Encode()) > maxKeyText) {
		err = fmt.Errorf("value: %w: write ?value= once for each variable of the key, at most %d, and %d bytes in all",
			ErrInvalid, maxKeyValues, maxKeyText)
	}
	if err != nil {
		return nil, err
	}
	ask := KeyQuestion{Limit: r.PathValue("name"), Values: q["value"], Reset: r.Method == http.MethodDelete}
	all, err := a.Controller.LimitKey(r.Context(), ask, scope)
	if err != nil {
		return nil, err
	}
	all.Missing = orEmpty(all.Missing)
	if ask.Reset {
		a.record(r, AuditEntry{What: "limit.reset", Object: ask.Limit, Detail: scope}, "admin: key of a limit reset",
			"limit", ask.Limit, "scope", scope)
	}
	return all, nil
}

// What a question about a key may have.
const (
	maxKeyValues = 8
	maxKeyText   = 2 << 10
)

func (a *API) settings(w http.ResponseWriter, _ *http.Request) (any, error) {
	return a.Gate.Settings(), nil
}

// How many are listed where the request does not say, and at most.
const (
	defaultTopKeys = 20
	maxTopKeys     = 1000
)

// topKeys lists the keys that limits reject most: ?n= of them, 1 to 1000.
func (a *API) topKeys(w http.ResponseWriter, r *http.Request) (any, error) {
	n := defaultTopKeys
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > maxTopKeys {
			return nil, statusError{http.StatusBadRequest, "n must be from 1 to 1000"}
		}
	}
	var all []metrics.TopKey
	if a.TopKeys != nil {
		all = a.TopKeys(n)
	}
	return map[string]any{"top_keys": orEmpty(all)}, nil
}
