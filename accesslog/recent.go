package accesslog

import (
	"bytes"
	"sync"
)

// recent holds the last lines in memory that does not grow: pages are filled one after the other. When all are full,
// the oldest one is emptied.
type recent struct {
	mu      sync.Mutex
	pages   [][]byte // of pageSize; the oldest first
	dropped int      // pages that were dropped before them
	most    int      // pages
	spare   []byte   // an emptied page
}

const pageSize = 1 << 20

// resize keeps the newest lines that fit into so many bytes, rounded up to pages.
func (r *recent) resize(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = int((size + pageSize - 1) / pageSize)
	if n := len(r.pages) - r.most; n > 0 {
		r.pages, r.dropped = append([][]byte(nil), r.pages[n:]...), r.dropped+n
	}
	if len(r.pages) < r.most || r.most == 0 {
		r.spare = nil
	}
}

// add takes one line; a line is shorter than a page.
func (r *recent) add(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.most == 0 {
		return
	}
	last := len(r.pages) - 1
	if last < 0 || len(r.pages[last])+len(line) > pageSize {
		if len(r.pages) == r.most {
			r.spare = r.pages[0][:0]
			copy(r.pages, r.pages[1:])
			r.pages, r.dropped = r.pages[:last], r.dropped+1
		}
		if r.spare == nil {
			r.spare = make([]byte, 0, pageSize)
		}
		r.pages = append(r.pages, r.spare)
		r.spare = nil
		last = len(r.pages) - 1
	}
	r.pages[last] = append(r.pages[last], line...)
}

// newest returns copies of the newest lines that contain all of texts, the newest first, and the oldest line of all. It
// locks one page at a time, so that the writer waits shortly.
func (r *recent) newest(most int, texts ...[]byte) (lines [][]byte, oldest []byte) {
	r.mu.Lock()
	number := r.dropped + len(r.pages) - 1
	if len(r.pages) > 0 {
		line, _, _ := bytes.Cut(r.pages[0], newline)
		oldest = bytes.Clone(line)
	}
	r.mu.Unlock()
	for more := true; more && len(lines) < most; number-- {
		lines, more = r.findOn(number, lines, most, texts)
	}
	return lines, oldest
}

// findOn searches the page of a number; more is false when it was dropped, and all before it.
func (r *recent) findOn(number int, lines [][]byte, most int, texts [][]byte) (all [][]byte, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := number - r.dropped
	if i < 0 || i >= len(r.pages) {
		return lines, false
	}
	return findIn(r.pages[i], lines, most, texts), true
}

// findIn searches one page. It searches forwards, which is fastest, and reverses the order of what it finds.
func findIn(page []byte, lines [][]byte, most int, texts [][]byte) [][]byte {
	var found [][]byte
	for {
		at := bytes.Index(page, texts[0])
		if at < 0 {
			break
		}
		start := bytes.LastIndexByte(page[:at], '\n') + 1
		line, rest, _ := bytes.Cut(page[start:], newline)
		if holds(line, texts[1:]) {
			found = append(found, line)
		}
		page = rest
	}
	for i := len(found) - 1; i >= 0 && len(lines) < most; i-- {
		lines = append(lines, bytes.Clone(found[i]))
	}
	return lines
}

func holds(line []byte, texts [][]byte) bool {
	for _, text := range texts {
		if !bytes.Contains(line, text) {
			return false
		}
	}
	return true
}

var newline = []byte("\n")
