package stockgate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"sluice/stockgate/layout"
	"sluice/stockgate/redisconn"
)

// Read reads skus in one pipeline, of a cluster one to each master. Where nothing is found and the layout has more to
// ask, a second one does, so that a misspelt field is a fault and not an unknown SKU, and a list that was emptied is
// sold out and not unknown.
func (r *Redis) Read(ctx context.Context, skus []string, out []layout.Reading) error {
	if len(skus) == 0 {
		return nil
	}
	l := r.layout.Load()
	if !allFit(l, skus) {
		return r.readFitting(ctx, l, skus, out)
	}
	if err := r.readKeys(ctx, skus, out); err != nil {
		return err
	}
	if l.IsList() {
		r.lists.markEmptied(l, skus, out)
	}
	if l.Traces() == 0 {
		return nil
	}
	return r.confirmUnknown(ctx, l, skus, out)
}

// allFit reports whether all of skus can have keys.
func allFit(l *layout.Layout, skus []string) bool {
	return !slices.ContainsFunc(skus, func(sku string) bool { return !l.Fits(sku) })
}

// readFitting reads those of skus that can have keys. The others are unknown.
func (r *Redis) readFitting(ctx context.Context, l *layout.Layout, skus []string, out []layout.Reading) error {
	var which []int
	for i, sku := range skus {
		out[i] = layout.Reading{OnSale: true}
		if l.Fits(sku) {
			which = append(which, i)
		}
	}
	return r.readSome(ctx, skus, which, out)
}

// readSome reads some of skus, by their positions.
func (r *Redis) readSome(ctx context.Context, skus []string, which []int, out []layout.Reading) error {
	if len(which) == 0 {
		return nil
	}
	names, found := make([]string, len(which)), make([]layout.Reading, len(which))
	for k, i := range which {
		names[k] = skus[i]
	}
	if err := r.Read(ctx, names, found); err != nil {
		return err
	}
	for k, i := range which {
		out[i] = found[k]
	}
	return nil
}

// readKeys reads skus, and teaches Redis the layout's script where it does not know it. An answer that says so has run
// nothing: asking again is safe.
func (r *Redis) readKeys(ctx context.Context, skus []string, out []layout.Reading) error {
	load := false
	for tries := 0; ; tries++ { // an older Redis, and then the script
		l := r.layout.Load()
		errs := r.readKeysOnce(ctx, l, load, skus, out)
		switch {
		case tries < 2 && l.IsScript() && anyOf(errs, noScript):
			load = true
		case tries < 2 && l.IsScript() && anyOf(errs, noCommand):
			r.layout.Store(l.Older())
		default:
			return r.learn(ctx, errs, out)
		}
	}
}

// readKeysOnce makes one round trip, with the script in it where load says so.
func (r *Redis) readKeysOnce(ctx context.Context, l *layout.Layout, load bool, skus []string,
	out []layout.Reading) []error {
	each, on := l.Commands(), new(halves)
	return r.each(ctx, read, each, skus, func(ctx context.Context, c redisconn.Commands, which []int) error {
		if l.SharesHash() {
			return readHashes(ctx, c, on, l, skus, which, out)
		}
		pipe := c.Pipeline()
		if load {
			l.QueueLoad(ctx, pipe)
		}
		for _, i := range which {
			l.Queue(ctx, pipe, skus[i])
		}
		answers, err := on.exec(ctx, pipe)
		if err != nil {
			return fmt.Errorf("read stock: %w", err)
		}
		if load {
			if err := answers[0].Err(); err != nil {
				faultOfAll(which, out, fmt.Errorf("load script_file: %w", err))
				return nil
			}
			answers = answers[1:]
		}
		for k, i := range which {
			out[i] = l.Read(skus[i], answers[k*each:(k+1)*each])
		}
		return nil
	})
}

// readHashes reads some of skus, those of one hash by one command.
func readHashes(ctx context.Context, c redisconn.Commands, on *halves, l *layout.Layout, skus []string, which []int,
	out []layout.Reading) error {
	some := make([]string, len(which))
	for k, i := range which {
		some[k] = skus[i]
	}
	pipe := c.Pipeline()
	l.QueueHashes(ctx, pipe, some)
	answers, err := on.exec(ctx, pipe)
	if err != nil {
		return fmt.Errorf("read stock: %w", err)
	}
	for k, found := range l.ReadHashes(some, answers) {
		out[which[k]] = found
	}
	return nil
}

// faultOfAll makes one fault the reading of some SKUs: Redis is well, and the configuration is not.
func faultOfAll(which []int, out []layout.Reading, fault error) {
	for _, i := range which {
		out[i] = layout.Reading{Fault: fault}
	}
}

// confirmUnknown asks more of SKUs of which nothing was found.
func (r *Redis) confirmUnknown(ctx context.Context, l *layout.Layout, skus []string, out []layout.Reading) error {
	var missing []int
	var names []string
	for i := range skus {
		if !out[i].Exists && out[i].Fault == nil {
			missing, names = append(missing, i), append(names, skus[i])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	each, on := l.Traces(), new(halves)
	errs := r.each(ctx, read, each, names, func(ctx context.Context, c redisconn.Commands, which []int) error {
		pipe := c.Pipeline()
		for _, k := range which {
			l.QueueTraces(ctx, pipe, names[k])
		}
		answers, err := on.exec(ctx, pipe)
		if err != nil {
			return fmt.Errorf("read stock: %w", err)
		}
		for n, k := range which {
			i := missing[k]
			out[i] = l.ReadTraces(skus[i], out[i], answers[n*each:(n+1)*each])
		}
		return nil
	})
	if errs == nil {
		return nil
	}
	all := make([]error, len(skus))
	for k, i := range missing {
		all[i] = errs[k]
	}
	return r.learn(ctx, all, out)
}

// halves is what a master has answered of pipelines whose other keys were not there, as while their slot moves: the
// other master, which is asked everything again, knows nothing of the keys that have not come yet.
type halves struct {
	mu   sync.Mutex
	said map[string]redis.Cmder // by the question
}

// exec is exec, and takes an answer from before a redirection in place of one from behind it.
func (h *halves) exec(ctx context.Context, pipe redis.Pipeliner) ([]redis.Cmder, error) {
	answers, err := exec(ctx, pipe)
	h.mu.Lock()
	defer h.mu.Unlock()
	redirected := redisconn.Redirected(err)
	if !redirected && h.said == nil {
		return answers, err
	}
	if h.said == nil {
		h.said = make(map[string]redis.Cmder)
	}
	for i, a := range answers {
		question := fmt.Sprintf("%q", a.Args())
		if before := h.said[question]; before != nil {
			answers[i] = before
		} else if redirected && (a.Err() == nil || ofKey(a.Err())) {
			h.said[question] = a
		}
	}
	return answers, err
}

// exec runs a pipeline. Its error is about Redis; what is wrong with a single key stays in its answer.
func exec(ctx context.Context, pipe redis.Pipeliner) ([]redis.Cmder, error) {
	answers, err := pipe.Exec(ctx)
	if err == nil {
		return answers, nil
	}
	load := false // what a script that cannot be loaded entails is no news
	for _, a := range answers {
		err := a.Err()
		switch {
		case err == nil:
		case ofScript(a, err): // before ofKey: NOPERM of SCRIPT LOAD entails NOSCRIPT, too
			load = load || a.Name() == "script"
		case ofKey(err):
		case load && redis.HasErrorPrefix(err, noScript):
		default:
			return answers, err
		}
	}
	return answers, nil
}

// ofKey reports whether err is about a key, or about what this user may do with it. All other errors, LOADING or
// NOAUTH as well as a lost connection, are Redis' own.
func ofKey(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE ") || redis.HasErrorPrefix(err, "NOPERM ")
}

// What Redis says when it has run nothing, and can be asked in another way.
const (
	noScript  = "NOSCRIPT"
	noCommand = "unknown command" // behind "ERR", which HasErrorPrefix passes over
)

// ofScript reports whether err, the answer a, is about what the shop's script does or says. A script may fail with
// words of its own, so that it is Redis' own errors that are told apart.
func ofScript(a redis.Cmder, err error) bool {
	var reply redis.Error
	switch a.Name() {
	case "script", "evalsha", "evalsha_ro":
	default:
		return false
	}
	if !errors.As(err, &reply) {
		return false
	}
	for _, own := range []string{
		noScript, noCommand, "LOADING", "NOAUTH", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "MOVED", "ASK", "TRYAGAIN",
		"READONLY", "OOM", "NOREPLICAS", "max number of clients",
	} {
		if redis.HasErrorPrefix(err, own+" ") {
			return false
		}
	}
	return true
}
