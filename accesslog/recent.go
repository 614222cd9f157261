package accesslog

import (
	"slices"
	"sync"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

const (
	pageSize = 64 << 10 // bytes
	backlog  = 64       // pages that wait for the writer at most
)

// recent holds the last records in memory, as coder writes them, in pages that are filled one after the other. The
// oldest page goes when there are too many; one that the writer has not had goes later. It is safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	pages   [][]byte // the oldest first
	keep    int      // pages
	readers int      // of next and kept, without the lock: what was written does not change while there are any
	spare   []byte   // a page that has gone; nil = none
	unread  int      // the page in which the records begin that the writer has not had
	at      int      // where they begin in it
	lost    uint64   // records that went before the writer had them
	logged  [reject.NumReasons]uint64
}

// resize keeps the newest records that fit into so many bytes, rounded up to pages.
func (r *recent) resize(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep = int((size + pageSize - 1) / pageSize)
	r.trim(r.keep)
	r.spare = nil
}

// add takes one record.
func (r *recent) add(e *metrics.AccessRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := len(r.pages) - 1
	if last < 0 || cap(r.pages[last])-len(r.pages[last]) < maxCoded {
		r.trim(max(r.keep, 1) - 1)
		if r.spare == nil {
			r.spare = make([]byte, 0, pageSize)
		}
		last = len(r.pages)
		r.pages, r.spare = append(r.pages, r.spare), nil
	}
	c := coder{bytes: r.pages[last]}
	c.record(e)
	r.pages[last] = c.bytes
	r.logged[e.Reason]++
}

// trim drops the oldest pages while there are more than n. mu is held.
func (r *recent) trim(n int) {
	for len(r.pages) > n {
		rest := coder{bytes: r.pages[0], reads: true}
		switch {
		case r.unread > 0:
			r.unread--
		case len(rest.bytes) > r.at && len(r.pages) < backlog:
			return
		default:
			rest.bytes = rest.bytes[r.at:]
			for r.at = 0; len(rest.bytes) > 0; r.lost++ {
				rest.record(new(metrics.AccessRecord))
			}
		}
		if r.readers == 0 {
			r.spare = r.pages[0][:0]
		}
		r.pages = slices.Delete(r.pages, 0, 1)
	}
}

// next appends to dst what the writer has not had. It is to be read until done is called.
func (r *recent) next(dst [][]byte) [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers++
	for ; r.unread < len(r.pages); r.unread, r.at = r.unread+1, 0 {
		dst = append(dst, r.pages[r.unread][r.at:])
	}
	if len(r.pages) > 0 { // the last page is not full
		r.unread--
		r.at = len(r.pages[r.unread])
	}
	return dst
}

// kept are the pages that are kept. They are to be read until done is called.
func (r *recent) kept() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers++
	return slices.Clone(r.pages[max(0, len(r.pages)-r.keep):])
}

// done ends the use of what next or kept returned.
func (r *recent) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers--
}

// counts are how many records came for each reason, and how many were lost.
func (r *recent) counts() (logged [reject.NumReasons]uint64, lost uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logged, r.lost
}
