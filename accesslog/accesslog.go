// Package accesslog writes one JSON object a line for each logged request, and keeps the last requests in memory for
// "sluice why", which formats them when it is asked. It promises that no request waits for it and that its memory is
// bounded: records that arrive faster than they can be written are dropped and counted. It logs a sample of the
// rejections; a summary line each second has the number of all.
// It does not log queries, cookies, header fields or bodies, and it logs a user only as a keyed hash.
package accesslog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sluice/proxy/metrics"
)

// Settings can be changed while the log is written.
type Settings struct {
	Output        string // "off", "stdout", or "file:" and a path
	RejectedFirst int    // rejections for each reason and second that are logged, 0 or above; after them
	RejectedEvery int    // one in so many is logged, 1 or above
	MaskIP        bool   // /24 of an IPv4 address, /48 of an IPv6 one
	Remember      int64  // bytes of requests that are kept for Find; 0 = none

	Hold time.Duration // from a reservation to its deadline; 0 = the time of reservations is not logged
}

// Options are the settings of a Log that do not change.
type Options struct {
	Settings
	Stdout io.Writer    // what "stdout" means
	Now    func() int64 // the clock of the records: monotonic ns
	Secret []byte       // key of the hashes of users, the same on all instances; empty = a random key of this process
	Log    *slog.Logger // for errors of the output
}

// Totals are the counts for the summary lines.
type Totals struct {
	metrics.Totals
	InFlight int // requests that wait for the upstream
}

// Log is a metrics.AccessLogger. It is safe for concurrent use.
type Log struct {
	stdout io.Writer
	now    func() int64
	log    *slog.Logger
	sample sample
	mask   atomic.Bool
	users  hash.Hash // the writer's own
	key    []byte
	hold   atomic.Int64 // ns
	name   string       // of the output in force, as configured; "" = none yet

	mu      sync.Mutex
	next    *output // replaces the writer's with the next line; nil = none
	recent  recent
	shift   atomic.Int64 // from the records' clock to Unix ns
	reopen  atomic.Bool
	failed  atomic.Uint64 // lines that the output did not take
	written atomic.Uint64 // lines

	begin         sync.Once
	stop, stopped chan struct{}
}

var _ metrics.AccessLogger = (*Log)(nil)

// New opens the output. Nothing is written until Start.
func New(o Options) (*Log, error) {
	l := &Log{
		stdout: o.Stdout, now: o.Now, log: o.Log, key: userKey(o.Secret),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	l.users = hmac.New(sha256.New, l.key)
	l.setClock()
	use, _, err := l.Prepare(o.Settings)
	if err != nil {
		return nil, err
	}
	use()
	return l, nil
}

// setClock reads how far the records' clock is from the time of day.
func (l *Log) setClock() { l.shift.Store(time.Now().UnixNano() - l.now()) }

// Log implements metrics.AccessLogger.
func (l *Log) Log(r metrics.AccessRecord) {
	shift := l.shift.Load()
	r.Arrived, r.Decided, r.Answered, r.Done = r.Arrived+shift, r.Decided+shift, r.Answered+shift, r.Done+shift
	l.recent.add(&r)
}

// Prepare opens the output of other settings. use puts all of them into force, and the writer changes to a new output
// with its next line; or discard closes it. Changes are made one at a time.
func (l *Log) Prepare(s Settings) (use, discard func(), err error) {
	var next *output // nil = it stays
	if l.name != s.Output {
		if next, err = openOutput(s.Output, l.stdout); err != nil {
			return nil, nil, err
		}
	}
	discard = func() {
		if next != nil {
			next.close()
		}
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if next != nil {
			if l.next != nil {
				l.next.close()
			}
			l.name, l.next = s.Output, next
		}
		l.sample.set(s.RejectedFirst, s.RejectedEvery)
		l.mask.Store(s.MaskIP)
		l.hold.Store(int64(s.Hold))
		l.recent.resize(s.Remember)
	}, discard, nil
}

// Reopen opens the log file again by its name, after a rotation has renamed it.
func (l *Log) Reopen() { l.reopen.Store(true) }

// Start begins to write. It calls totals now and then once a second, from the writer's goroutine; counts from before
// the start appear in no summary.
func (l *Log) Start(totals func() Totals) {
	l.begin.Do(func() {
		w := newWriter(l, totals())
		go w.write(totals)
	})
}

// Close writes what is left. It waits at most closeTimeout for an output that accepts nothing.
func (l *Log) Close() {
	l.begin.Do(func() {
		l.next.close()
		close(l.stopped)
	})
	close(l.stop)
	select {
	case <-l.stopped:
	case <-time.After(closeTimeout):
	}
}

// closeTimeout bounds how long a full pipe delays the end of the process.
const closeTimeout = 2 * time.Second

// userKey derives a key for this purpose alone, so that the hashes show nothing about other uses of the secret.
func userKey(secret []byte) []byte {
	if len(secret) == 0 {
		key := make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails, says its doc
		return key
	}
	of := hmac.New(sha256.New, secret)
	of.Write([]byte("sluice: users in the access log"))
	return of.Sum(nil)
}
