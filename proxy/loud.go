package proxy

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
)

// Loud is a key that a limit refuses often.
type Loud struct {
	Limit   string `json:"limit"`   // the name of the keyed rate, else the reason
	Key     string `json:"key"`     // addresses and names of things as they are; what may be a secret or a person as a hash
	Refused uint64 `json:"refused"` // at least so often of late: halved each minute
}

// Loudest lists the keys that were refused most, at most n of them, the loudest first. It knows those whose refusals
// are more than about 1 in 128 of all; of the others some.
func (p *Proxy) Loudest(n int) []Loud {
	sums := map[loudKey]Loud{}
	for i := range p.counts.shards {
		p.counts.shards[i].loud.addTo(sums, p.clock())
	}
	all := make([]Loud, 0, len(sums))
	for _, l := range sums {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Loud) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(max(n, 0), len(all))]
}

const (
	loudSets  = 16
	loudWays  = 8
	loudText  = 64             // bytes of a key that are kept
	loudPause = 60_000_000_000 // ns after which all counts are halved
)

// loudness finds the keys that are refused most among any number of them, in memory that no client can grow: sets of
// eight, each a Space-Saving summary (Metwally, Agrawal and El Abbadi, 2005) of the keys that hash to it. A new key takes
// the place of the least of its set and inherits its count, which may be too much by that and is never too little; so
// what is more than an eighth of its set's refusals is there for certain. A refusal that meets another one here is not
// counted: nobody waits to be refused.
type loudness struct {
	mu   sync.Mutex
	age  int64 // in loudPauses, of the last count
	sets [loudSets][loudWays]loudCell
}

type loudKey struct {
	limit string
	hash  uint64
}

type loudCell struct {
	loudKey
	count, over uint64 // over is what was inherited
	text        [loudText]byte
	length      int
}

// note counts that m refused key.
func (l *loudness) note(r *request, m *meter, key []byte) {
	of := loudKey{m.Name, maphash.Bytes(r.proxy.counts.seed, key)}
	if !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if cell := l.count(of, r.now); cell.length == 0 {
		r.text = m.appendText(r.text[:0], r, false)
		cell.length = copy(cell.text[:], r.text)
	}
}

// noteClient counts that the client's address was refused.
func (l *loudness) noteClient(r *request, reason Reason) {
	client := r.clientAddr()
	if client.Is6() {
		network, _ := client.Prefix(64) // whoever has one address of it has them all
		client = network.Addr()
	}
	of := loudKey{reason.String(), maphash.Comparable(r.proxy.counts.seed, client)}
	if !l.mu.TryLock() {
		return
	}
	defer l.mu.Unlock()
	if cell := l.count(of, r.now); cell.length == 0 {
		r.text = client.AppendTo(r.text[:0])
		if client.Is6() {
			r.text = append(r.text, "/64"...)
		}
		cell.length = copy(cell.text[:], r.text)
	}
}

// count counts one refusal of a key and returns its cell, without a text when it is new. The caller holds mu.
func (l *loudness) count(of loudKey, now int64) *loudCell {
	l.forget(now)
	set := &l.sets[of.hash%loudSets]
	least := &set[0]
	for i := range set {
		if cell := &set[i]; cell.loudKey == of {
			cell.count++
			return cell
		} else if cell.count < least.count {
			least = cell
		}
	}
	*least = loudCell{loudKey: of, count: least.count + 1, over: least.count}
	return least
}

// forget halves all counts for each pause that has passed, so that who was loud yesterday is not loud now.
func (l *loudness) forget(now int64) {
	by := now/loudPause - l.age
	if by <= 0 {
		return
	}
	l.age += by
	for i := range l.sets {
		for j := range l.sets[i] {
			l.sets[i][j].count >>= by
			l.sets[i][j].over >>= by
		}
	}
}

func (l *loudness) addTo(sums map[loudKey]Loud, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(now)
	for i := range l.sets {
		for j := range l.sets[i] {
			cell := &l.sets[i][j]
			if cell.count > cell.over {
				sum := sums[cell.loudKey]
				sums[cell.loudKey] = Loud{cell.limit, string(cell.text[:cell.length]), sum.Refused + cell.count - cell.over}
			}
		}
	}
}

// appendHash appends what stands for v where v itself is not to be shown. The seed is of this process alone: nobody can
// look up what it was.
func (r *request) appendHash(dst, v []byte) []byte {
	return strconv.AppendUint(append(dst, '#'), maphash.Bytes(r.proxy.counts.seed, v), 36)
}
