package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// history answers with the seconds that are remembered, the oldest first: ?after= a second's at.
func (a *API) history(w http.ResponseWriter, r *http.Request) (any, error) {
	after, err := secondOf(r.URL.Query().Get("after"))
	if err != nil {
		return nil, statusError{http.StatusBadRequest, "after must be the at of a second"}
	}
	seconds, _ := a.History.after(after)
	all := make([]json.RawMessage, len(seconds))
	for i := range seconds {
		all[i] = seconds[i].json
	}
	return map[string]any{"kept": keptSeconds, "seconds": all}, nil // at most so many seconds
}

func secondOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// sendWithin is how long one event may take to be taken; who is slower is left.
const sendWithin = 10 * time.Second

// events streams each second as it ends (Server-Sent Events), and each deed of the audit. Who comes back with
// Last-Event-ID gets what was missed meanwhile; who comes for the first time, the latest second.
func (a *API) events(w http.ResponseWriter, r *http.Request) (any, error) {
	if !a.History.acquireListener() {
		w.Header().Set("Retry-After", "5")
		return nil, statusError{http.StatusServiceUnavailable,
			fmt.Sprintf("%d streams are open already: tabs of a browser can share one", maxStreams)}
	}
	defer a.History.releaseListener()
	last, err := secondOf(r.Header.Get("Last-Event-ID"))
	if err != nil || last == 0 {
		last = 0
		if s := a.History.latest(); s != nil {
			last = s.At - 1
		}
	}
	s := stream{w: w, control: http.NewResponseController(w), trail: a.AuditLog, second: last, deed: a.AuditLog.latest()}
	s.open()
	for {
		seconds, news := a.History.after(s.second)
		if !s.send(seconds) {
			return nil, nil
		}
		select {
		case <-news:
		case <-a.History.stop:
			return nil, nil
		case <-r.Context().Done():
			return nil, nil
		}
	}
}

// stream is one listener.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	trail   *AuditLog
	second  int64 // at of the last that was sent
	deed    int64 // ID likewise
}

// open sends the head. The server's deadlines are for answers that end.
func (s *stream) open() {
	_ = s.control.SetReadDeadline(time.Time{}) // a server without deadlines needs none
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("Cache-Control", "no-store")
	s.w.Header().Set("X-Accel-Buffering", "no") // nginx in between would keep events back
	fmt.Fprint(s.w, "retry: 2000\n\n")
}

// send sends seconds, and what was done meanwhile, and reports whether the listener is still there.
func (s *stream) send(seconds []encodedSecond) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(sendWithin))
	for _, d := range s.trail.since(s.deed, keptDeeds) {
		text, err := json.Marshal(d)
		if err != nil {
			panic("BUG: a deed that is no JSON: " + err.Error())
		}
		fmt.Fprintf(s.w, "event: audit\ndata: %s\n\n", text)
		s.deed = d.ID
	}
	for _, one := range seconds {
		if _, err := fmt.Fprintf(s.w, "event: second\nid: %d\ndata: %s\n\n", one.second.At, one.json); err != nil {
			return false
		}
		s.second = one.second.At
	}
	return s.control.Flush() == nil
}

// Question says whose requests are asked about: what is empty may be anything.
type Question struct{ RequestID, User, SKU string }

// Decisions are what is remembered of them: lines of the access log.
type Decisions struct {
	Decisions []json.RawMessage `json:"decisions"` // the newest first
	Since     time.Time         `json:"since,omitzero"`
}

// mostDecisions are found at once: the newest.
const mostDecisions = 100

// why tells what became of requests: ?request_id= or ?user= and ?sku=. That nothing is known of them is an answer.
func (a *API) why(w http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	asked := Question{RequestID: q.Get("request_id"), User: q.Get("user"), SKU: q.Get("sku")}
	switch {
	case a.Why == nil:
		return nil, statusError{http.StatusNotFound, "no gateway is behind this: nothing is remembered"}
	case asked.RequestID == "" && (asked.User == "" || asked.SKU == ""):
		return nil, statusError{http.StatusBadRequest, "name ?request_id=, or ?user= and ?sku="}
	}
	found := a.Why(asked, mostDecisions)
	found.Decisions = orEmpty(found.Decisions)
	return found, nil
}
