package admin

import (
	"encoding/json"
	"net/http"
	"time"
)

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
func (a *API) why(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	asked := Question{RequestID: q.Get("request_id"), User: q.Get("user"), SKU: q.Get("sku")}
	switch {
	case a.Why == nil:
		fail(w, http.StatusNotFound, "no gateway is behind this: nothing is remembered")
		return
	case asked.RequestID == "" && (asked.User == "" || asked.SKU == ""):
		fail(w, http.StatusBadRequest, "name ?request_id=, or ?user= and ?sku=")
		return
	}
	found := a.Why(asked, mostDecisions)
	if found.Decisions == nil {
		found.Decisions = []json.RawMessage{}
	}
	answer(w, found)
}
