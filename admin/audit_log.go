package admin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// AuditEntry is one line of the audit: what an operator changed, or was kept from changing.
type AuditEntry struct {
	ID     int64     `json:"id"` // rises by one with each
	At     time.Time `json:"at"`
	Who    string    `json:"who,omitempty"`    // as the caller named himself; it was not checked
	Role   string    `json:"role"`             // "operator", "none", or "sluice": the gate itself, as at an override's end
	From   string    `json:"from,omitempty"`   // address
	What   string    `json:"what"`             // such as "stock.change" or "override.set"
	Object string    `json:"object,omitempty"` // of it: a SKU, a SKU and a serial, a key, a file
	Detail string    `json:"detail,omitempty"` // for people
	Before any       `json:"before,omitempty"`
	After  any       `json:"after,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// How many are remembered. Wrong tokens have a place of their own, so that who guesses does not wipe out what was done.
const (
	keptDeeds      = 1000
	keptRejections = 200
)

// AuditLog remembers the latest deeds, and logs each. Nothing in it is a secret, or a shopper's name. It is safe for
// concurrent use, and outlives a reload.
type AuditLog struct {
	log *slog.Logger

	mu                sync.Mutex
	last              int64 // ID
	deeds, rejections []AuditEntry
}

// NewAuditLog returns a Trail without deeds, which logs to log.
func NewAuditLog(log *slog.Logger) *AuditLog { return &AuditLog{log: log} }

// Record remembers d, of now, and logs it as message with more attributes; "" = it is in the log already.
func (t *AuditLog) Record(d AuditEntry, message string, attributes ...any) {
	d.At = time.Now().UTC().Truncate(time.Millisecond)
	t.appendBounded(&t.deeds, keptDeeds, d)
	if message == "" {
		return
	}
	said := []any{"audit", d.What, "role", d.Role, "from", d.From}
	if d.Who != "" {
		said = append(said, "who", d.Who)
	}
	t.log.Info(message, append(said, attributes...)...)
}

// rejected remembers that a request came from an address with a wrong token.
func (t *AuditLog) rejected(from string) {
	t.appendBounded(&t.rejections, keptRejections, AuditEntry{At: time.Now().UTC().Truncate(time.Millisecond),
		Role: "none", From: from, What: "token.reject"})
	t.log.Warn("admin: wrong token", "audit", "token.reject", "from", from)
}

func (t *AuditLog) appendBounded(in *[]AuditEntry, most int, d AuditEntry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	d.ID = t.last
	if len(*in) == most {
		*in = slices.Delete(*in, 0, most/10) // in portions: the rest moves once for many
	}
	*in = append(*in, d)
}

// since are the latest deeds after one, at most so many, the newest last.
func (t *AuditLog) since(after int64, most int) []AuditEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last <= after {
		return nil
	}
	all := slices.Concat(t.deeds, t.rejections)
	slices.SortStableFunc(all, func(x, y AuditEntry) int { return int(x.ID - y.ID) })
	all = slices.DeleteFunc(all, func(d AuditEntry) bool { return d.ID <= after })
	return all[max(0, len(all)-most):]
}

// record remembers what the sender of r did.
func (a *API) record(r *http.Request, d AuditEntry, message string, attributes ...any) {
	who := callerOf(r)
	d.Who, d.Role, d.From = who.name, who.role, who.from
	a.AuditLog.Record(d, message, attributes...)
}

// audit lists deeds, the newest first; ?after= an ID. Who accepts application/x-ndjson has a line of each, the oldest
// first.
func (a *API) audit(w http.ResponseWriter, r *http.Request) (any, error) {
	limit, err := limitOf(r)
	after := int64(0)
	if text := r.URL.Query().Get("after"); err == nil && text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return nil, statusError{http.StatusBadRequest, "after must be the id of an audit entry"}
		}
	}
	if err != nil {
		return nil, err
	}
	all := a.AuditLog.since(after, limit)
	if strings.Contains(r.Header.Get("Accept"), "application/x-ndjson") {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.Header().Set("Cache-Control", "no-store")
		lines := json.NewEncoder(w)
		for _, d := range all {
			_ = lines.Encode(d) // a client that has gone needs no answer
		}
		return nil, nil
	}
	slices.Reverse(all)
	return map[string]any{"audit": orEmpty(all)}, nil
}

// latest is the ID of the last deed; 0 = there is none.
func (t *AuditLog) latest() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}
