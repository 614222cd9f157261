package accesslog

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"sync"
)

// recent holds the last lines in memory that does not grow: pages are filled one after the other. When all are full,
// the oldest one is emptied.
type recent struct {
	mu    sync.Mutex
	pages [][]byte // of pageSize; the oldest first
	most  int      // pages
	gone  int      // pages that were emptied or dropped: the number of pages[0]
}

const pageSize = 1 << 20

// resize keeps the newest lines that fit into so many bytes, rounded up to pages.
func (r *recent) resize(size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = int((size + pageSize - 1) / pageSize)
	if n := len(r.pages) - r.most; n > 0 {
		r.pages = slices.Clone(r.pages[n:])
		r.gone += n
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
			emptied := r.pages[0][:0]
			copy(r.pages, r.pages[1:])
			r.pages[last] = emptied
			r.gone++
		} else {
			r.pages = append(r.pages, make([]byte, 0, pageSize))
			last++
		}
	}
	r.pages[last] = append(r.pages[last], line...)
}

// newest returns copies of the newest lines that contain all of texts, the newest first, and the oldest line of all.
// Lines that are added during the search may be missing.
func (r *recent) newest(most int, texts ...[]byte) (lines [][]byte, oldest []byte) {
	for page := range r.newestPages() {
		if lines = findIn(page, lines, most, texts); len(lines) >= most {
			break
		}
	}
	return lines, r.oldest()
}

// newestPages yields a copy of each page, the newest first. The writer waits only while one page is copied. The next
// copy overwrites the one before.
func (r *recent) newestPages() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var page []byte
		for number, ok := math.MaxInt, true; ; {
			if page, number, ok = r.copyBefore(number, page); !ok || !yield(page) {
				return
			}
		}
	}
}

// copyBefore copies into dst the newest page whose number is below a number. ok is false if no such page is left.
func (r *recent) copyBefore(number int, dst []byte) (page []byte, of int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := min(number-r.gone, len(r.pages)) - 1
	if at < 0 {
		return dst, number, false
	}
	return append(dst[:0], r.pages[at]...), r.gone + at, true
}

// oldest returns a copy of the oldest line; nil = there is none.
func (r *recent) oldest() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pages) == 0 {
		return nil
	}
	line, _, _ := bytes.Cut(r.pages[0], newline)
	return bytes.Clone(line)
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
