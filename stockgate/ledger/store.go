package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"sluice/stockgate/redisconn"
)

// Store keeps ledgers in one Redis that never evicts: a single server, the master that sentinels name, or a cluster.
// It is safe for concurrent use. Every change is one script in one slot, so that it is done whole or not at all; no
// script is ever sent twice unless Redis says that it did not run it. After an error it is not known whether it ran,
// and the same call with the same serials finds out.
//
// A key that is gone while others still count on it, or that holds what the ledger did not write, is an error and
// never 0.
//
// Lost state is noticed. Each call leaves this instance's mark in the ledger and says what this instance has seen of
// it; the script that finds less freezes the SKU before it takes a unit. When Redis turns out to be another process,
// a SKU sells nothing until each instance has found what it has seen, and then goes on by itself. A reply that is not
// this call's closes its SKU too. A closed SKU opens by itself when every instance that sold has told what it knows
// of its orders, which each keeps in its operation log; see Recover. What no living instance has seen cannot be
// missed: an instance whose first calls for a SKU were all lost with Redis does not count until its next call,
// within a second if a reserver is behind it.
type Store struct {
	link    *redisconn.Client
	scripts scripts
	events  int // that XADD keeps of one SKU, about
	most    int // that may wait to be acknowledged; 0 = no consumer acknowledges
	name    redisconn.Name
	channel string // of notifications

	replicas     int
	replicaWait  time.Duration
	handOutAfter time.Duration

	instance string // "" = a visitor
	calls    atomic.Int64
	trips    trips
	Settle   time.Duration // how long a frozen ledger stays so at least; defaultSettle
	Seen     *Seen
	Log      *OperationLog

	lost     *prometheus.CounterVec // by reason
	log      *slog.Logger
	nameless atomic.Bool // Redis does not tell its run id, and the log says so

	away     context.Context // ends when Close begins
	depart   context.CancelFunc
	visits   sync.WaitGroup
	mu       sync.Mutex // guards the beginning of visits
	visiting bool
	revisit  bool          // something has changed since the visit began
	hurry    chan struct{} // the next try of a visit does not wait

	journal *StateDir              // nil = none
	unkept  atomic.Pointer[string] // why none is kept any more, and what to do; nil = it is
	looked  bool                   // a returned instance has looked at every ledger; of visits alone
}

// StoreOptions say which Redis, and how much of its changes it remembers.
type StoreOptions struct {
	redisconn.Options
	Events int // changes of one SKU that its stream keeps for consumers, about; at least 1

	// Acknowledged keeps every change until Acknowledge says that it was read, however many there are: past Events the
	// store raises an alarm, since Redis' memory is at stake.
	Acknowledged bool

	// Replicas must have a new hold before its order may be forwarded; 0 = none. Each Reserve then waits for them, for
	// at most ReplicaWait: whole ms, less than Timeout, by default half of it. Too few make the new holds of that call
	// unsure, so that the reserver gives them back: while replicas are away nothing is sold.
	Replicas    int
	ReplicaWait time.Duration

	// HandOutAfter is for how long a process must have called a ledger before it hands out orders of it. A Redis that
	// loses its last writes keeps a mark of the process then, and the ledger waits for it. 0 = at once.
	HandOutAfter time.Duration

	Name redisconn.Name // of the shop; stores with different names share no ledger

	// Visitor is for tools that come and go: they leave no mark, so that no SKU waits for them after a restart of
	// Redis, and they notice nothing.
	Visitor bool

	// StateDir is a folder on a local disk, of this machine alone, for what an instance must know when it returns after
	// it was killed; "" = it returns as another one, and an operator opens what Redis has lost at the same time.
	StateDir string

	Instance string       // begins the name of this instance's marks: at most 64 visible ASCII bytes without "|"
	Log      *slog.Logger // what was lost; default slog.Default()
}

// NewStore returns a Store in Redis. It does not wait for Redis: whether it is there shows at the first call, and
// whether it is fit by Check. The caller must Close it.
func NewStore(o StoreOptions) (*Store, error) {
	return open(o, compiled())
}

// open takes the scripts, which tests break.
func open(o StoreOptions, scripts scripts) (*Store, error) {
	if o.Events < 1 {
		return nil, errors.New("events: it must be positive")
	}
	if !o.Name.Valid() {
		return nil, fmt.Errorf("name %q: it must not be empty, nor have a colon or a brace", o.Name)
	}
	if err := o.replicated(); err != nil {
		return nil, err
	}
	if len(o.Instance) > 64 || o.Instance != "" && !ValidSerial([]byte(o.Instance)) ||
		strings.Contains(o.Instance, "|") {
		return nil, errors.New("instance: it must have at most 64 visible ASCII bytes without a bar")
	}
	r := &Store{
		events: o.Events, name: o.Name, channel: channel(o.Name, o.DB),
		scripts: scripts, replicas: o.Replicas, replicaWait: o.ReplicaWait, handOutAfter: o.HandOutAfter,
		trips: trips{byName: make(map[string]*roundTrips)},
		log:   o.Log, Settle: defaultSettle, Seen: newSeen(), Log: newOperationLog(defaultLogSize),
	}
	if o.Acknowledged {
		r.events, r.most = MaxNumber, o.Events
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	r.lost = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sluice_ledger_closed_total",
		Help: "SKUs that this instance closed since their ledger had lost something, by what told: see the log."},
		[]string{"why"})
	for _, why := range lossReasons() {
		r.lost.WithLabelValues(why)
	}
	if !o.Visitor { // a name that no process had before: what a process of that name has seen is forgotten with it
		r.instance = strings.TrimPrefix(o.Instance+"-"+rand.Text(), "-")
	}
	if !o.Visitor && o.StateDir != "" {
		if err := r.resume(o.StateDir); err != nil {
			return nil, err
		}
	}
	if o.Identify == nil {
		o.Identify = r.identify
	}
	if o.Moved == nil {
		o.Moved = r.revisitAll
	}
	first := o.OnServer
	o.OnServer = func(ctx context.Context, c redis.Cmdable) error {
		if first != nil {
			if err := first(ctx, c); err != nil {
				return err
			}
		}
		return r.scripts.load(ctx, c)
	}
	r.hurry = make(chan struct{}, 1)
	r.away, r.depart = context.WithCancel(context.Background())
	way, err := redisconn.New(o.Options)
	if err != nil {
		return nil, err
	}
	r.link = way
	if r.Seen.Returned || len(r.Seen.SKUs()) > 0 {
		r.revisitAll()
	}
	return r, nil
}

// Describe implements prometheus.Collector.
func (r *Store) Describe(ch chan<- *prometheus.Desc) { r.lost.Describe(ch) }

// Collect implements prometheus.Collector.
func (r *Store) Collect(ch chan<- prometheus.Metric) { r.lost.Collect(ch) }

// Close takes this instance's marks away, as far as that can be done within 2 s, and closes all connections: no SKU
// waits for this instance when Redis is restarted. Settle what is owed before. Later calls fail.
func (r *Store) Close() error {
	left := r.deregister()
	err := r.link.Close()
	if r.journal != nil {
		r.Log.Keep(nil, nil)
		err = errors.Join(err, r.journal.Close(left))
	}
	return err
}

// Check rejects a Redis that may throw a ledger away: its maxmemory-policy must be noeviction, on every master of a
// cluster. Where INFO does not tell the policy it rejects too.
func (r *Store) Check(ctx context.Context) error { return checkEviction(ctx, r.link) }

// checkEviction is Check of the servers of a link, for others who keep orders there.
func checkEviction(ctx context.Context, link *redisconn.Client) error {
	ways, err := link.Servers(ctx)
	if err != nil {
		return fmt.Errorf("check redis: %w", err)
	}
	for _, way := range ways {
		err := way.Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
			text, err := c.Info(ctx, "memory").Result()
			if err != nil {
				return fmt.Errorf("check redis: %w", err)
			}
			return fit(text)
		}, storeFault)
		if err != nil && way.Address() != "" && len(ways) > 1 {
			err = fmt.Errorf("%s: %w", way.Address(), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrUnfit is the cause when a Redis must not keep ledgers.
var ErrUnfit = errors.New("reservations need noeviction, or Redis may throw them away")

// fit judges what INFO memory says.
func fit(text string) error {
	for line := range strings.Lines(text) {
		policy, ok := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
		switch {
		case ok && policy == "noeviction":
			return nil
		case ok:
			return fmt.Errorf("check redis: maxmemory-policy %s: %w", policy, ErrUnfit)
		}
	}
	return fmt.Errorf("check redis: it does not tell its maxmemory-policy: %w", ErrUnfit)
}

// storeFault is err where it tells that Redis cannot be used: not what a script itself ran into, one ledger's broken
// keys above all, nor an unfit policy. Redis 6 and 7 word the former differently, but both name the script.
func storeFault(err error) error {
	var reply redis.Error
	if errors.Is(err, ErrUnfit) || errors.As(err, &reply) && strings.Contains(reply.Error(), "user_script") {
		return nil
	}
	return err
}

// at is the way to the server that has a SKU.
func (r *Store) at(sku string) redisconn.Route { return r.link.To(r.home(sku)) }

// KeysOf names every key that a store of that name makes for one SKU and for itself, for callers that delete them.
func KeysOf(n redisconn.Name, sku string) []string {
	r := &Store{name: n}
	all := []string{registryKey(n), marksKey(n), secretKey(n), n.ClaimKey()}
	for _, of := range []string{sku, slotsOf} {
		keys := r.keys(of)
		all = append(append(all, keys[:]...), r.queueKeys(of)...)
	}
	return all
}

const numKeys = 5

// keys are those of one SKU: the braces put all of them into one cluster slot. They are parts of one string, since
// every call makes them.
func (r *Store) keys(sku string) [numKeys]string {
	tag := r.name.SKUKey(sku, "")
	all, n := tag+"s"+tag+"r"+tag+"u"+tag+"x"+tag+"q", len(tag)+1
	return [numKeys]string{all[:n], all[n : 2*n], all[2*n : 3*n], all[3*n : 4*n], all[4*n:]}
}

// home is the first of keys.
func (r *Store) home(sku string) string { return r.name.SKUKey(sku, "s") }
