// Package accesslog writes down what became of requests, one JSON object a line, and remembers the last of them for
// "sluice why". It promises that no request waits for it and that its memory is fixed: what comes faster than it can be
// written is dropped and counted. Of refusals it takes a sample, and tells in a line a second how many there were in all.
//
// It refuses to write what could be used against a shopper: it gets no query, cookie, header or body to begin with, and
// what it gets of a user it writes as a keyed hash alone.
package accesslog

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"sluice/proxy"
)

// Settings can be changed while the log is written.
type Settings struct {
	Output       string // "off", "stdout", or "file:" and a path
	RefusedFirst int    // of each reason in a second, 0 or above; then
	RefusedEvery int    // one in so many, 1 or above
	MaskIP       bool   // /24 of an IPv4 address, /48 of an IPv6 one
	Remember     int64  // bytes of lines that Find looks at; 0 = none
}

// Options are what a Log works with for as long as it lives.
type Options struct {
	Settings
	Stdout io.Writer     // what "stdout" means
	Now    func() int64  // the clock of the entries: monotonic ns
	Secret []byte        // the key of users' hashes; the same in all instances that shall agree. Empty = one of this process alone
	Hold   time.Duration // how long before its deadline a unit was taken; 0 = deadlines tell nothing of that
	Log    *slog.Logger  // what is wrong with the output
}

// Totals is what the gate has counted, for the line a second.
type Totals struct {
	proxy.Totals
	InFlight int // requests inside the shop
}

// Log is a proxy.Journal. It is safe for concurrent use.
type Log struct {
	stdout io.Writer
	now    func() int64
	log    *slog.Logger
	rings  []ring
	sample sample
	mask   atomic.Bool
	users  hash.Hash // the writer's own
	key    []byte
	hold   time.Duration

	mu      sync.Mutex
	next    *output // to change to; nil = none
	output  *output // of the writer, once it has begun
	recent  recent
	reopen  atomic.Bool
	dropped [numCauses]atomic.Uint64
	written atomic.Uint64 // lines

	begin         sync.Once
	stop, stopped chan struct{}
}

var _ proxy.Journal = (*Log)(nil)

// New opens the output. Nothing is written until Start.
func New(o Options) (*Log, error) {
	l := &Log{
		stdout: o.Stdout, now: o.Now, log: o.Log, hold: o.Hold, key: userKey(o.Secret),
		rings: make([]ring, ringsFor(runtime.GOMAXPROCS(0))), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	for i := range l.rings {
		l.rings[i].slots = make([]slot, ringSlots)
	}
	l.users = hmac.New(sha256.New, l.key)
	if err := l.Set(o.Settings); err != nil {
		return nil, err
	}
	return l, nil
}

// Set changes the settings, all or none. The writer goes over to a new output with its next line.
func (l *Log) Set(s Settings) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.next
	if current == nil {
		current = l.output
	}
	if current == nil || current.name != s.Output {
		next, err := openOutput(s.Output, l.stdout)
		if err != nil {
			return err
		}
		if l.next != nil {
			l.next.close()
		}
		l.next = next
	}
	l.sample.set(s.RefusedFirst, s.RefusedEvery)
	l.mask.Store(s.MaskIP)
	l.recent.resize(s.Remember)
	return nil
}

// Reopen opens the file of the log anew: what rotated it has given it another name.
func (l *Log) Reopen() { l.reopen.Store(true) }

// Start begins to write. totals is asked once a second, and now: what was counted before is nobody's second.
func (l *Log) Start(totals func() Totals) {
	l.begin.Do(func() {
		w := newWriter(l, totals())
		go w.write(totals)
	})
}

// Close writes what is left. An output that takes nothing any more is waited for only for a moment.
func (l *Log) Close() {
	l.begin.Do(func() {
		l.next.close()
		close(l.stopped)
	})
	close(l.stop)
	select {
	case <-l.stopped:
	case <-time.After(patience):
	}
}

// patience is how long a full pipe may keep the process from ending.
const patience = 2 * time.Second

// userKey is a key for this purpose alone: whoever sees the hashes learns nothing of the secret's other uses.
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
