package stockgate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/internal/periodic"
	"sluice/stockgate/redisconn"
)

// replicas are servers that stock is read from in place of their master. Nothing is written there.
//
// How old a replica's stock may be is measured without a write: four times a second the master is asked how much it has
// sent to its replicas, and then each replica how much of it it has. A replica that has what the master had sent at an
// instant knows everything that was written until then. One that is older than the bound is not read, nor one that
// follows another master, or none, as after it was promoted; then the master is read.
type replicas struct {
	master *redisconn.Client
	all    []*replica
	bound  time.Duration
	turn   atomic.Uint32
	reads  [2]atomic.Uint64 // from the master, and from a replica

	sent []sentAt // of the goroutine alone; the oldest first
	id   string   // of what the master sends

	stop context.CancelFunc
	done sync.WaitGroup
}

// replica is one of them.
type replica struct {
	address string
	link    *redisconn.Client
	began   time.Time              // whose clock cannot be set
	current atomic.Int64           // ns from began, until which it knows everything; 0 = not known
	fault   atomic.Pointer[string] // why it is not read, but for its age; nil = there is nothing
}

// sentAt is how much the master had sent at an instant.
type sentAt struct {
	at     time.Time
	offset int64
}

const (
	replicaInterval = 250 * time.Millisecond
	keptOffsets     = 240 // a minute of them
)

// Replica is how one replica is.
type Replica struct {
	Address   string
	Read      bool          // stock is read there
	Staleness time.Duration // what was written up to so long ago is known there; below 0 = not known
	Fault     string        // why it is not read; "" = it is
}

// ReadFrom reads stock from the replicas at these addresses, as long as they are less than bound behind. It must be
// called before anything is read. Close ends it.
func (r *Redis) ReadFrom(o RedisOptions, addresses []string, bound time.Duration) error {
	p := &replicas{master: r.link, bound: bound}
	for _, address := range addresses {
		to := o
		to.Topology, to.MasterName, to.Addresses, to.Log = redisconn.Single, "", []string{address}, r.log
		link, err := redisconn.New(to)
		if err != nil {
			p.close()
			return err
		}
		p.all = append(p.all, &replica{address: address, link: link, began: time.Now()})
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.done.Go(func() { p.run(ctx) })
	r.replicas = p
	return nil
}

func (p *replicas) close() {
	if p == nil {
		return
	}
	if p.stop != nil {
		p.stop()
	}
	p.done.Wait()
	for _, one := range p.all {
		_ = one.link.Close()
	}
}

func (p *replicas) run(ctx context.Context) { periodic.Now(ctx, replicaInterval, p.measure) }

// measure asks the master, and then all replicas at the same time.
func (p *replicas) measure(ctx context.Context) {
	at := time.Now()
	if is, err := replication(ctx, p.master); err == nil && is["role"] == "master" {
		if id := is["master_replid"]; id != p.id {
			p.id, p.sent = id, nil
		}
		offset, _ := strconv.ParseInt(is["master_repl_offset"], 10, 64)
		if p.sent = append(p.sent, sentAt{at, offset}); len(p.sent) > keptOffsets {
			p.sent = append(p.sent[:0], p.sent[1:]...)
		}
	}
	var asked sync.WaitGroup
	for _, one := range p.all {
		asked.Go(func() { one.measure(ctx, p.id, p.sent) })
	}
	asked.Wait()
}

// measure asks a replica how much it has of what its master sent.
func (o *replica) measure(ctx context.Context, id string, sent []sentAt) {
	is, err := replication(ctx, o.link)
	fault := ""
	switch {
	case err != nil:
		fault = "cannot be reached: " + err.Error()
	case is["role"] != "slave":
		fault = "is a master, and follows no other: it was promoted, or never was a replica"
	case id == "":
		fault = "cannot be compared: its master was not reached yet"
	case is["master_replid"] != id:
		fault = "follows another master than stock.redis.addresses leads to, or none"
	}
	if fault != "" {
		o.current.Store(0)
		o.fault.Store(&fault)
		return
	}
	has, _ := strconv.ParseInt(is["slave_repl_offset"], 10, 64)
	for i := len(sent) - 1; i >= 0; i-- {
		if sent[i].offset <= has {
			o.current.Store(max(o.current.Load(), int64(sent[i].at.Sub(o.began))))
			break
		}
	}
	o.fault.Store(nil)
}

// replication is the section of INFO.
func replication(ctx context.Context, link *redisconn.Client) (is map[string]string, err error) {
	err = link.Do(ctx, func(ctx context.Context, c redisconn.Commands) error {
		text, err := c.Info(ctx, "replication").Result()
		if err != nil {
			return fmt.Errorf("info replication: %w", err)
		}
		is = map[string]string{}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				is[name] = value
			}
		}
		return nil
	}, nil)
	return is, err
}

// state is how the replica is at an instant.
func (o *replica) state(bound time.Duration) Replica {
	s := Replica{Address: o.address, Staleness: -1}
	if fault := o.fault.Load(); fault != nil {
		s.Fault = *fault
		return s
	}
	current := o.current.Load()
	if current == 0 {
		s.Fault = "was not asked yet"
		return s
	}
	if s.Staleness = time.Since(o.began) - time.Duration(current); s.Staleness > bound {
		s.Fault = fmt.Sprintf("is %s behind, more than stock.redis.max_staleness %s", s.Staleness.Round(time.Millisecond),
			bound)
	}
	s.Read = s.Fault == ""
	return s
}

// fresh reports whether stock may be read there. It allocates nothing.
func (o *replica) fresh(bound time.Duration) bool {
	current := o.current.Load()
	return current != 0 && time.Since(o.began)-time.Duration(current) <= bound
}

// FromMaster is a context in which stock is read from the master. An operator who has just changed a stock must not
// read the old number at a replica, and change it once more.
func FromMaster(ctx context.Context) context.Context {
	return context.WithValue(ctx, fromMaster{}, true)
}

type fromMaster struct{}

// pick is the replica that is read next, in turn; nil = the master is read.
func (p *replicas) pick(ctx context.Context) *replica {
	if p == nil || ctx.Value(fromMaster{}) != nil {
		return nil
	}
	first := int(p.turn.Add(1))
	for i := range p.all {
		if one := p.all[(first+i)%len(p.all)]; one.fresh(p.bound) {
			p.reads[1].Add(1)
			return one
		}
	}
	p.reads[0].Add(1)
	return nil
}

// gone reports whether err says that this replica cannot be read. It is not read then until it was measured again.
func (o *replica) gone(err error) bool {
	if err == nil || lost(read, err) == nil {
		return false
	}
	o.current.Store(0)
	return true
}

// callReading makes one round trip that reads, to a replica where there is one to be read, or else to the master.
func (r *Redis) callReading(ctx context.Context, key string,
	ask func(context.Context, redisconn.Commands) error) error {

	if from := r.replicas.pick(ctx); from != nil {
		err := r.call(ctx, from.link.To(key), read, ask)
		if !from.gone(err) {
			return err
		}
	}
	return r.call(ctx, r.link.To(key), read, ask)
}

// Replicas are those that stock is read from where they can be.
func (r *Redis) Replicas() (all []Replica) {
	if r.replicas == nil {
		return nil
	}
	for _, one := range r.replicas.all {
		all = append(all, one.state(r.replicas.bound))
	}
	return all
}

var (
	replicaStaleness = prometheus.NewDesc("sluice_redis_replica_staleness_seconds",
		"What was written up to so long ago is known at a replica of stock.redis.replicas; NaN = it is not known.",
		[]string{"server"}, nil)
	replicaRead = prometheus.NewDesc("sluice_redis_replica_read",
		"Whether stock is read from a replica of stock.redis.replicas: 1, or 0, as where it is too old.",
		[]string{"server"}, nil)
	stockReads = prometheus.NewDesc("sluice_redis_stock_reads_total",
		"Reads of stock, by what they were from, where stock.redis.replicas names any.", []string{"from"}, nil)
)

// collect sends how the replicas are.
func (p *replicas) collect(to chan<- prometheus.Metric) {
	if p == nil {
		return
	}
	for _, one := range p.all {
		s, seconds, read := one.state(p.bound), math.NaN(), 0.0
		if s.Staleness >= 0 {
			seconds = s.Staleness.Seconds()
		}
		if s.Read {
			read = 1
		}
		to <- prometheus.MustNewConstMetric(replicaStaleness, prometheus.GaugeValue, seconds, s.Address)
		to <- prometheus.MustNewConstMetric(replicaRead, prometheus.GaugeValue, read, s.Address)
	}
	for i, from := range []string{"master", "replica"} {
		to <- prometheus.MustNewConstMetric(stockReads, prometheus.CounterValue, float64(p.reads[i].Load()), from)
	}
}
