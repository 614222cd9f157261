package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/admin"
	"sluice/config"
	"sluice/gateway/stores"
	"sluice/limiter"
	"sluice/proxy/metrics"
	"sluice/proxy/reject"
	"sluice/stockgate/fleet"
)

// membership is this instance among those of its fleet: how many they are, the summaries that they tell each other, and
// what operators have changed on all of them. Without a Redis that instances share there is none.
type membership struct {
	g    *Gateway
	host string

	summing sync.Mutex      // of what follows
	last    metrics.Traffic // of the summary before
	lastAt  time.Time

	mu     sync.Mutex
	joined bool         // this gateway runs; a load test tells no fleet of itself
	of     *fleet.Fleet // nil = none
}

func newMembership(g *Gateway) *membership {
	host, _ := os.Hostname() // for people, and a part of a name that is unique anyway
	return &membership{g: g, host: host}
}

// prepare makes the way to the other instances as soon as a configuration has them share something; use begins it.
func (m *membership) prepare(c *config.Config) (use func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.joined || m.of != nil || !c.SharesRedis() {
		return func() {}, nil
	}
	link, err := m.g.link.of(c, m.g.log)
	if err != nil {
		return nil, err
	}
	of, err := fleet.New(fleet.Options{Link: link, Name: stores.Name(c), Instance: stores.InstanceName(),
		Secret: []byte(c.Stock.Reserve.Secret), Now: m.g.now, Tell: m.tell, Summary: m.summary, Do: m.do,
		Changed: m.g.controller.fleetChanged, Log: m.g.log})
	if err != nil {
		return nil, c.Errorf("stock.redis", "%v", err)
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.of = of
		of.Start()
	}, nil
}

// tell takes which instance this is, and of how many.
func (m *membership) tell(s fleet.Share) {
	m.g.limits.SetShare(limiter.Share{Rank: s.Rank, Of: s.Of, Clock: s.Clock})
}

// countRates has the fleet count the rates in force that instances keep together.
func (m *membership) countRates() {
	if of := m.current(); of != nil {
		of.UseRates(m.g.limits.rates.Fleet())
	}
}

// join has this instance be one of its fleet, under what holds there as far as Redis tells it at once.
func (m *membership) join() error {
	m.mu.Lock()
	m.joined = true
	m.mu.Unlock()
	h := m.g.controller
	h.changing.Lock()
	use, err := m.prepare(m.g.running.Load())
	if err == nil {
		use()
		m.countRates()
	}
	h.changing.Unlock()
	if of := m.current(); of != nil {
		of.Await()
	}
	return err
}

// close leaves the fleet. No controller may have its lock. The fleet stays current: a task may still ask for it.
func (m *membership) close() {
	if of := m.current(); of != nil {
		of.Close()
	}
}

// current is the way to the other instances; nil = there is none.
func (m *membership) current() *fleet.Fleet {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of
}

// errUnsigned is the answer where what one instance says to all could be said by anyone who can write to Redis.
var errUnsigned = fmt.Errorf("fleet: %w: a change of all instances is signed, and stock.reserve.secret_file is "+
	"empty: write it, the same on all instances, and restart them; or change this instance alone (--instance)",
	admin.ErrConflict)

// errAlone is the answer where instances have nothing in common.
var errAlone = fmt.Errorf("fleet: %w: instances share nothing here: the file has no name, or stock.source is not "+
	"\"redis\" and no limit has the scope \"fleet\"; change this instance alone (--instance)",
	admin.ErrConflict)

// Describe implements prometheus.Collector.
func (m *membership) Describe(to chan<- *prometheus.Desc) { fleet.Describe(to) }

// Collect implements prometheus.Collector.
func (m *membership) Collect(to chan<- prometheus.Metric) {
	if x := m.current(); x != nil {
		x.Collect(to)
	}
}

// summary is what this instance tells the others.
func (m *membership) summary() string {
	s := m.g.Status()
	one := admin.Instance{Host: bounded(m.host), Version: bounded(s.Version),
		Config: m.g.controller.config().Version(), Mode: s.Mode,
		Phase: s.Phase, Ready: s.Ready, Degraded: s.Degraded, Started: s.Started, InFlight: m.g.limits.InFlight()}
	one.Overrides, one.Unfit = m.g.controller.standing()
	now, at := m.g.counters.Traffic(), time.Now()
	m.summing.Lock()
	defer m.summing.Unlock()
	if seconds := at.Sub(m.lastAt).Seconds(); !m.lastAt.IsZero() && seconds > 0 {
		most, rejected := int64(0), int64(0)
		for reason := range now.Rejected {
			n := now.Rejected[reason] - m.last.Rejected[reason]
			if rejected += n; n > most {
				most, one.Mostly = n, reject.Reason(reason).String()
			}
		}
		one.Requests = float64(now.Requests-m.last.Requests) / seconds
		one.Rejected = float64(rejected) / seconds
		one.Admitted = max(0, one.Requests-one.Rejected)
	}
	m.last, m.lastAt = now, at
	text, err := json.Marshal(one)
	if err != nil {
		panic("BUG: a summary that is no JSON: " + err.Error())
	}
	return string(text)
}

// bounded is text of an environment, of at most so many bytes as a name needs.
func bounded(text string) string { return text[:min(len(text), 64)] }

// task is what an instance asks of all.
type task struct {
	Key   *admin.KeyQuestion `json:"key,omitempty"`
	Drain bool               `json:"drain,omitempty"`
	By    string             `json:"by,omitempty"` // the instance that asks; it drains when the others have answered
	Who   string             `json:"who,omitempty"`
}

// do does a task, and answers it with an admin.KeyState.
func (m *membership) do(text string) string {
	var t task
	var done admin.KeyState
	switch err := json.Unmarshal([]byte(text), &t); {
	case err != nil, t.Key == nil && !t.Drain:
		done.Fault = "this instance does not know that task: it has another version"
	case t.Key != nil:
		done = m.key(*t.Key)
	case !m.current().Signs():
		done.Fault = errUnsigned.Error()
	case t.By != m.current().ID():
		if err := m.g.controller.drainHere(); err != nil {
			done.Fault = err.Error()
			break
		}
		m.g.trail.Record(admin.AuditEntry{Role: "sluice", Who: t.Who, What: "gate.drain", Detail: admin.ScopeFleet},
			"drain of the fleet asked for", "by", t.Who)
	}
	told, _ := json.Marshal(done) // text and numbers
	return string(told)
}

// key asks this instance about a key.
func (m *membership) key(ask admin.KeyQuestion) admin.KeyState {
	s, err := m.g.limits.Key(m.g.running.Load(), ask.Limit, ask.Values, ask.Reset)
	if err != nil {
		s = admin.KeyState{Fault: err.Error()}
	}
	s.Host, s.Reset = bounded(m.host), ask.Reset && err == nil
	return s
}

// answerTime is how long an operator waits for the other instances: two beats and what they take.
const answerTime = 3 * time.Second

// ask gives a task to all instances.
func (m *membership) ask(ctx context.Context, t task) (states []admin.KeyState, missing []string, err error) {
	x := m.current()
	if x == nil {
		return nil, nil, errAlone
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answers, missing, err := x.Ask(ctx, string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%w; to ask this instance alone: --instance", err)
	}
	for _, a := range answers {
		var s admin.KeyState
		if err := json.Unmarshal([]byte(a.Text), &s); err != nil {
			s.Fault = "its answer is not understood: it has another version"
		}
		s.Instance = a.Instance
		states = append(states, s)
	}
	return states, missing, nil
}

// Fleet implements admin.Controller.
func (h *controller) Fleet(ctx context.Context) (admin.Fleet, error) {
	x := h.g.fleet.current()
	if x == nil {
		return admin.Fleet{Instances: []admin.Instance{}, Differ: []string{}}, nil // it is alone
	}
	told, err := x.Instances(ctx)
	if err != nil {
		return admin.Fleet{}, err
	}
	all := admin.Fleet{Name: x.Name(), Self: x.ID(), Instances: []admin.Instance{}, Differ: []string{}}
	for _, t := range told {
		var one admin.Instance
		_ = json.Unmarshal([]byte(t.Summary), &one) // of another version: what is understood is shown
		one.ID, one.Age = t.ID, t.Age.Seconds()
		all.Instances = append(all.Instances, one)
	}
	for _, c := range []struct {
		name string
		of   func(i *admin.Instance) string
	}{
		{"version", func(i *admin.Instance) string { return i.Version }},
		{"config", func(i *admin.Instance) string { return i.Config }},
		{"mode", func(i *admin.Instance) string { return i.Mode }},
	} {
		if slices.ContainsFunc(all.Instances, func(i admin.Instance) bool { return c.of(&i) != c.of(&all.Instances[0]) }) {
			all.Differ = append(all.Differ, c.name)
		}
	}
	return all, nil
}

// LimitKey implements admin.Controller.
func (h *controller) LimitKey(ctx context.Context, ask admin.KeyQuestion, scope string) (admin.KeyStates, error) {
	done := admin.KeyStates{Limit: ask.Limit, Values: ask.Values}
	if _, err := h.g.limits.Key(h.g.running.Load(), ask.Limit, ask.Values, false); err != nil {
		return done, err // what this instance does not know no other is asked for
	}
	x := h.g.fleet.current()
	if scope == admin.ScopeInstance || scope == "" && x == nil {
		s := h.g.fleet.key(ask)
		if x != nil {
			s.Instance = x.ID()
		}
		if done.Instances = []admin.KeyState{s}; s.Fault != "" {
			return done, fmt.Errorf("limit: %w: %s", admin.ErrInvalid, s.Fault)
		}
		return done, nil
	}
	var err error
	done.Instances, done.Missing, err = h.g.fleet.ask(ctx, task{Key: &ask})
	return done, err
}

// Drain implements admin.Controller.
func (h *controller) Drain(ctx context.Context, all bool, who string) (admin.DrainStarted, error) {
	done := admin.DrainStarted{Phase: "draining"}
	if !all {
		return done, h.drainHere()
	}
	x := h.g.fleet.current()
	switch {
	case x == nil:
		return done, errAlone
	case !x.Signs():
		return done, errUnsigned
	}
	states, missing, err := h.g.fleet.ask(ctx, task{Drain: true, By: x.ID(), Who: who})
	if err != nil {
		return done, err
	}
	done.Missing = missing
	for _, s := range states {
		if s.Fault == "" {
			done.Instances = append(done.Instances, s.Instance)
		} else {
			done.Missing = append(done.Missing, s.Instance)
		}
	}
	return done, h.drainHere()
}

// drainHere has this instance drain.
func (h *controller) drainHere() error {
	if h.drain == nil {
		return fmt.Errorf("drain: %w: this process is not ended from here", admin.ErrConflict)
	}
	select {
	case h.drain <- struct{}{}:
	default: // it is going to drain anyway
	}
	return nil
}
