package accesslog

import (
	"time"

	"sluice/proxy/metrics"
	"sluice/proxy/reject"
)

const (
	pause   = 20 * time.Millisecond // between two reads of the records
	batch   = 64 << 10              // bytes of one write
	quiet   = time.Minute           // between two logged errors of the output
	beat    = time.Second           // between two summaries
	longest = 8 << 10               // bytes; longer than any line
)

// writer is the state of the one goroutine that writes.
type writer struct {
	*Log
	out     *output
	buffer  []byte
	lines   uint64 // in buffer
	pages   [][]byte
	before  [reject.NumReasons]uint64 // rejections that were counted before the start
	said    summary                   // the last summary
	nextOne time.Time
	quiet   time.Time // until then an error of the output is only counted
}

func newWriter(l *Log, counted Totals) *writer {
	w := &writer{
		Log: l, buffer: make([]byte, 0, batch+longest), said: summary{Totals: counted}, before: counted.Rejected,
		nextOne: time.Now().Add(beat),
	}
	w.change()
	return w
}

// write moves records to the output until Close, and then what is left.
func (w *writer) write(totals func() Totals) {
	defer close(w.stopped)
	defer func() { w.out.close() }()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			w.drain()
			w.summarize(totals)
			w.flush()
			return
		case now := <-tick.C:
			w.change()
			if now.Before(w.nextOne) {
				w.drain()
			} else {
				w.nextOne = now.Add(beat)
				w.setClock()
				w.summarize(totals)
				w.detectRotation()
			}
			w.flush()
		}
	}
}

// change switches to a new output, or opens the same file again.
func (w *writer) change() {
	w.mu.Lock()
	next := w.next
	if next != nil {
		w.next = nil
	}
	w.mu.Unlock()
	if next != nil {
		if w.out != nil {
			w.out.close()
		}
		w.out = next
	}
	if w.reopen.Swap(false) {
		w.openAgain()
	}
}

// detectRotation opens the file again after it was renamed or removed.
func (w *writer) detectRotation() {
	if w.out.moved() {
		w.openAgain()
	}
}

// openAgain keeps the old file where a new one cannot be opened, so that no line is lost.
func (w *writer) openAgain() {
	if w.out.file == nil {
		return
	}
	next, err := openOutput(w.out.name, w.stdout)
	if err != nil {
		w.complain(err)
		return
	}
	w.out.close()
	w.out = next
}

// drain appends the lines of the records that came. Records that arrive meanwhile may wait for the next time.
func (w *writer) drain() {
	w.pages = w.recent.next(w.pages[:0])
	defer w.recent.done()
	if w.out.name == "off" {
		return
	}
	var e metrics.AccessRecord
	for _, page := range w.pages {
		for c := (coder{bytes: page, reads: true}); len(c.bytes) > 0; w.lines++ {
			c.record(&e)
			w.buffer = w.appendLine(w.buffer, &e, w.users)
			if len(w.buffer) >= batch {
				w.flush()
			}
		}
	}
}

// flush writes the lines in the buffer.
func (w *writer) flush() {
	if len(w.buffer) == 0 {
		return
	}
	if _, err := w.out.to.Write(w.buffer); err != nil {
		w.failed.Add(w.lines)
		w.complain(err)
	} else if w.out.name != "off" {
		w.written.Add(w.lines)
	}
	w.buffer, w.lines = w.buffer[:0], 0
}

// complain logs an error of the output, at most once per quiet period.
func (w *writer) complain(err error) {
	if now := time.Now(); now.After(w.quiet) {
		w.quiet = now.Add(quiet)
		w.log.Error("access log: lines are lost", "output", w.out.name, "err", err)
	}
}
