package ledger

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// leaveTimeout bounds how long Close takes the marks away.
const leaveTimeout = 2 * time.Second

// revisitAll begins a visit of everything that this instance has seen, after the one that is under way: others may
// wait for that, for SKUs that no client asks this instance about. So it does whenever another server answers than
// before, also one that it has known, and when slots of a cluster have moved: what one server had is at another then.
func (r *Store) revisitAll() {
	if r.instance == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away.Err() != nil {
		return
	}
	if r.revisit = r.visiting; r.revisit {
		select {
		case r.hurry <- struct{}{}:
		default: // it does already
		}
		return
	}
	r.visiting = true
	r.visits.Go(r.checkIn)
}

// maxFailedCalls is after how many calls in a row, of which no ledger had an answer, no other is called: a
// cluster of which one master is away still answers most of them, and in a rush a call may find no connection.
const maxFailedCalls = 3

// checkIn looks at every ledger that this instance has seen, and again at those that have not answered, until each has
// or Close wants it to end. A ledger that Redis has lost may have neither an order nor a sweep that would find it out.
// When the instance has returned, it looks once at every other ledger, too: others may wait for it at one that its
// journal does not have, since it had no order there.
func (r *Store) checkIn() {
	skus, listed := r.Seen.SKUs(), r.looked || !r.Seen.Returned
	for more := true; more; {
		if !listed {
			if all, err := r.SKUs(r.away, MaxListed); err == nil {
				skus, listed = union(skus, all), true
			}
		}
		skus = r.callEach(r.away, "visit", skus)
		r.looked = r.looked || listed && len(skus) == 0
		if !listed || len(skus) > 0 {
			select {
			case <-r.away.Done():
			case <-r.hurry:
			case <-time.After(time.Second):
			}
		}
		r.mu.Lock()
		if r.revisit {
			skus, r.revisit = union(skus, r.Seen.SKUs()), false
		}
		more = (!listed || len(skus) > 0) && r.away.Err() == nil
		r.visiting = more
		r.mu.Unlock()
	}
}

// union is what a or b has.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// callEach runs a script on ledgers, many in a call, until Redis is away. It returns those on which the script did not
// end well, the ones that were not asked first: so a second try begins with them.
func (r *Store) callEach(ctx context.Context, script string, skus []string) (missed []string) {
	failed := 0
	for len(skus) > 0 && failed < maxFailedCalls && ctx.Err() == nil {
		n := min(len(skus), MaxTogether)
		calls := r.callMany(ctx, skus[:n], func(sku string) scriptCall {
			return scriptCall{script: script, sku: sku, args: []any{r.events}}
		})
		answered := len(missed) + n
		for i := range calls {
			if calls[i].err != nil {
				missed = append(missed, skus[i])
			}
		}
		if failed++; len(missed) < answered {
			failed = 0
		}
		skus = skus[n:]
	}
	return append(slices.Clip(skus), missed...)
}

// deregister ends the visits, tells frozen ledgers what no other instance knows, and takes the marks of this instance
// away, where it left any. It reports whether nothing waits for this instance any more.
func (r *Store) deregister() (left bool) {
	r.mu.Lock()
	r.depart()
	r.mu.Unlock()
	r.visits.Wait()
	if r.instance == "" {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	told := make(map[string]int64) // the epoch of a SKU that this instance has told all
	for heard := true; heard; {
		if !r.handOver(ctx, told) {
			return false
		}
		left = len(r.callEach(ctx, "leave", r.Seen.SKUs())) == 0 // without Redis the marks grow old
		heard = slices.ContainsFunc(r.Pending(), func(sku string) bool { return r.Seen.Find(sku).Claim().Epoch > told[sku] })
	}
	return left && (!r.Seen.Returned || r.looked) // or another ledger may have a mark of the process before
}

// handOver tells ledgers all that this instance knows, in each epoch once, also in one of which it hears meanwhile: who
// takes its mark away in an epoch and tells that one then finds that its own calls are lost. It reports false when one
// cannot be told.
func (r *Store) handOver(ctx context.Context, told map[string]int64) bool {
	for _, sku := range r.Pending() {
		for epoch := r.Seen.Find(sku).Claim().Epoch; told[sku] != epoch; epoch = r.Seen.Find(sku).Claim().Epoch {
			if r.HandOver(ctx, sku) != nil {
				return false
			}
			told[sku] = epoch
		}
	}
	return true
}

// ErrStateDir is the cause when no journal can be kept in the folder of StateDir.
var ErrStateDir = errors.New("no journal can be kept there")

// resume lets this store go on as the instance whose journal is in dir, if no process has it, or begins a journal. Each
// shop has a folder there by its name: the orders of one in the ledgers of another would be units that are never sold.
func (r *Store) resume(dir string) (err error) {
	if r.journal, err = openStateDir(filepath.Join(dir, string(r.name)), r.Seen, r.Log); err != nil {
		return fmt.Errorf("%w: %w", ErrStateDir, err)
	}
	r.calls.Store(r.journal.Calls)
	if r.journal.Name != "" {
		r.instance, r.Seen.Returned = r.journal.Name, true
	}
	if err := r.journal.Begin(r.instance); err != nil {
		return fmt.Errorf("%w: %w", ErrStateDir, err)
	}
	for _, d := range r.journal.damaged {
		kept, err := r.journal.setAside(d)
		r.log.Error("the journal of server.state_dir is damaged: this process is another instance than the one before; a "+
			"SKU whose ledger has lost orders waits for that one until an operator opens it (sluice stock recover)",
			"file", d.path, "found", errors.Join(d.cause, err), "kept", kept, "instance_before", r.journal.former)
	}
	r.Log.Keep(r.journal, func(err, rejecting error) {
		text := "the journal of server.state_dir is given up until the next start: if this instance and Redis die in the " +
			"same minute, an operator must open the SKUs"
		if rejecting != nil {
			text, err = "orders are rejected: the journal of server.state_dir can neither be written nor deleted; mend the "+
				"disk, or restart without server.state_dir", rejecting
		}
		r.log.Error(text, "err", err)
		text = fmt.Sprintf("%s (%v)", text, err)
		r.unkept.Store(&text)
	})
	return nil
}

// Unkept says why no journal is kept in StateDir any more, and what that means; "" = it is kept, or there is no
// StateDir.
func (r *Store) Unkept() string {
	if text := r.unkept.Load(); text != nil {
		return *text
	}
	return ""
}
