package metrics

import (
	"cmp"
	"hash/maphash"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"sluice/proxy/reject"
)

// TopKey is a key that a limit rejects often.
type TopKey struct {
	Limit    string `json:"limit"`    // the name of the keyed rate limit, else the reason
	Key      string `json:"key"`      // readable for addresses and names of things, a hash for users and secrets
	Rejected uint64 `json:"rejected"` // recent rejections, halved each minute; the true number may be higher
}

const (
	topKeySets   = 16
	topKeyWays   = 8
	maxTopKey    = 64             // bytes of a key's text that are kept
	halvingPause = 60_000_000_000 // ns between two halvings of all counts
	ipv6Network  = 64             // bits: a client of IPv6 has a whole /64
)

// topKeys finds the keys that are counted most often, rejected ones or SKUs, in memory that clients cannot grow. It
// consists of sets of eight keys; a key's hash selects the set. Each set is a Space-Saving summary (Metwally, Agrawal
// and El Abbadi, 2005): a new key replaces the key with the lowest count and inherits that count. So a count may be too
// high by what was inherited and is never too low, and a key with more than an eighth of its set's counts is always
// present.
//
// A request that finds the shard locked is not counted here: rejections never wait.
type topKeys struct {
	seed maphash.Seed

	mu   sync.Mutex
	age  int64  // of the last count, in multiples of halvingPause since the clock's zero
	text []byte // buffer for the text of a new key
	sets [topKeySets][topKeyWays]topKeyEntry
}

type topKeyID struct {
	limit string
	hash  uint64
}

type topKeyEntry struct {
	topKeyID
	count, inherited uint64
	text             [maxTopKey]byte
	length           int // of text
}

// TopKeys lists the keys with the most rejections, at most n, in falling order. It knows all keys that have more than
// about 1 in 128 of all rejections, and some of the others. now is in monotonic ns.
func (c *Counters) TopKeys(n int, now int64) []TopKey {
	return c.mostCounted(n, now, func(s *Shard) *topKeys { return &s.top })
}

// mostCounted adds up one summary of all shards.
func (c *Counters) mostCounted(n int, now int64, summary func(*Shard) *topKeys) []TopKey {
	sums := map[topKeyID]TopKey{}
	for i := range c.shards {
		summary(&c.shards[i]).addTo(sums, now)
	}
	all := make([]TopKey, 0, len(sums))
	for _, k := range sums {
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b TopKey) int {
		return cmp.Or(cmp.Compare(b.Rejected, a.Rejected), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Key, b.Key))
	})
	return all[:min(max(n, 0), len(all))]
}

// AppendHash appends the text that stands for v where v itself must not be shown. The hash is keyed by a random seed of
// this process, so v cannot be found from it.
func (c *Counters) AppendHash(dst, v []byte) []byte {
	return strconv.AppendUint(append(dst, '#'), maphash.Bytes(c.seed, v), 36)
}

// RejectedKey counts that the named limit rejected a key at now (monotonic ns). appendText appends the key's text for
// operators; it is called only for a key that is new here, and must not call methods of s. The call keeps limit and no
// byte of key. It does not allocate, and neither does a function literal that is passed as appendText.
func (s *Shard) RejectedKey(limit string, key []byte, now int64, appendText func(dst []byte) []byte) {
	s.top.add(topKeyID{limit, maphash.Bytes(s.top.seed, key)}, now, appendText)
}

// add counts id once, unless another goroutine counts here.
func (t *topKeys) add(id topKeyID, now int64, appendText func(dst []byte) []byte) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	if e := t.count(id, now); e.length == 0 {
		t.text = appendText(t.text[:0])
		e.length = copy(e.text[:], t.text)
	}
}

// RejectedClient counts that the client's address was rejected for the reason, at now (monotonic ns). IPv6 addresses
// count as their /64 network. It does not allocate.
func (s *Shard) RejectedClient(reason reject.Reason, client netip.Addr, now int64) {
	if client.Is6() {
		network, _ := client.Prefix(ipv6Network)
		client = network.Addr()
	}
	address := client.As16()
	s.RejectedKey(reason.String(), address[:], now, func(dst []byte) []byte {
		switch {
		case !client.IsValid():
			return append(dst, "local"...) // a Unix socket
		case client.Is6():
			return append(client.AppendTo(dst), "/64"...)
		}
		return client.AppendTo(dst)
	})
}

// count counts one rejection and returns the key's entry, which has no text if the key is new. The caller holds t.mu.
func (t *topKeys) count(id topKeyID, now int64) *topKeyEntry {
	t.halve(now)
	set := &t.sets[id.hash%topKeySets]
	lowest := &set[0]
	for i := range set {
		if e := &set[i]; e.topKeyID == id {
			e.count++
			return e
		} else if e.count < lowest.count {
			lowest = e
		}
	}
	*lowest = topKeyEntry{topKeyID: id, count: lowest.count + 1, inherited: lowest.count}
	return lowest
}

// halve halves all counts once for each pause that has passed, so that old rejections stop to matter.
func (t *topKeys) halve(now int64) {
	pauses := now/halvingPause - t.age
	if pauses <= 0 {
		return
	}
	t.age += pauses
	for i := range t.sets {
		for j := range t.sets[i] {
			t.sets[i][j].count >>= pauses
			t.sets[i][j].inherited >>= pauses
		}
	}
}

// addTo adds the counts of all entries, without what they inherited.
func (t *topKeys) addTo(sums map[topKeyID]TopKey, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.halve(now)
	for i := range t.sets {
		for j := range t.sets[i] {
			e := &t.sets[i][j]
			if e.count > e.inherited {
				n := sums[e.topKeyID].Rejected + e.count - e.inherited
				sums[e.topKeyID] = TopKey{e.limit, string(e.text[:e.length]), n}
			}
		}
	}
}
