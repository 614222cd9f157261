package accesslog

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"sluice/proxy/metrics"
)

// Question selects requests: those that match every field that is not empty.
type Question struct {
	RequestID, User, SKU string
}

// Answer has the matching requests that are still in memory.
type Answer struct {
	Lines []json.RawMessage // newest first, as in the log
	Since time.Time         // of the oldest request in memory; zero = there is none
}

// Find returns at most so many matching requests from memory. Requests are kept with the output "off" too. Those that
// are added during the search are not found.
func (l *Log) Find(q Question, most int) (a Answer) {
	pages := l.recent.kept()
	defer l.recent.done()
	if q == (Question{}) || len(pages) == 0 {
		return a
	}
	users := hmac.New(sha256.New, l.key)
	for _, page := range slices.Backward(pages) {
		if len(a.Lines) == most {
			break
		}
		var found []metrics.AccessRecord
		for c := (coder{bytes: page, reads: true}); len(c.bytes) > 0; {
			var e metrics.AccessRecord
			c.record(&e)
			if q.selects(&e) {
				found = append(found, e)
			}
		}
		for _, e := range slices.Backward(found[max(0, len(found)-most+len(a.Lines)):]) {
			line := l.appendLine(nil, &e, users)
			a.Lines = append(a.Lines, line[:len(line)-1])
		}
	}
	var oldest metrics.AccessRecord
	(&coder{bytes: pages[0], reads: true}).record(&oldest)
	a.Since = time.Unix(0, oldest.Arrived)
	return a
}

func (q *Question) selects(e *metrics.AccessRecord) bool {
	return (q.RequestID == "" || q.RequestID == string(e.ID)) && (q.SKU == "" || q.SKU == string(e.SKU)) &&
		(q.User == "" || q.User == string(e.User))
}
