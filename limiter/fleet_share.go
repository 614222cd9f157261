package limiter

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// FleetShare is the part of a keyed rate that one instance of a fleet may admit: a base part of every key, and another
// part of the keys that are busy somewhere. It counts who asks for the busy keys, so that their parts can follow the
// demand. The parts are decided elsewhere.
//
// A key has the burst of its part, and one token at least. Where no part is known, nothing is admitted.
//
// It is safe for concurrent use.
type FleetShare struct {
	base   atomic.Uint64 // bits of a float64
	keys   atomic.Pointer[fleetKeys]
	wanted [fleetWanted]atomic.Uint64 // keys that were rejected by their base part

	mu   sync.Mutex
	last time.Duration // when demand was asked for
}

// FleetDemand is how often a key is asked for here.
type FleetDemand struct {
	Key       uint64
	PerSecond float64 // below 0 = not known yet
	Held      float64 // a part that cannot be given away at once
	Share     float64 // the part of now
}

// FleetPart is the part of a key that may be admitted here.
type FleetPart struct {
	Key   uint64
	Share float64
}

const (
	fleetWanted  = 64 // new busy keys between two questions
	fleetStripes = 4
)

// fleetKeys are the busy keys. They do not change, but for their counts.
type fleetKeys struct {
	seed [2]uint64
	byID map[uint64]*fleetKey
}

type fleetKey struct {
	share atomic.Uint64 // bits of a float64
	asked [fleetStripes]struct {
		n atomic.Int64
		_ cacheLine
	}
	demand float64 // a second, smoothed; below 0 = not known yet. Under FleetShare.mu
}

// SetParts takes the part of every key, and those of the busy ones. seed is the same at all instances, and a secret:
// who knew it could choose a key that is taken for another's.
func (f *FleetShare) SetParts(seed [2]uint64, base float64, busy []FleetPart) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := &fleetKeys{seed: seed, byID: make(map[uint64]*fleetKey, len(busy))}
	old := f.keys.Load()
	for _, part := range busy {
		k := &fleetKey{demand: -1}
		if old != nil && old.seed == seed && old.byID[part.Key] != nil {
			k = old.byID[part.Key]
		}
		k.share.Store(math.Float64bits(part.Share))
		next.byID[part.Key] = k
	}
	f.base.Store(math.Float64bits(base))
	f.keys.Store(next)
}

// Demand is how often the busy keys were asked for since the last call, smoothed, and which keys became busy. elapsed
// is the time of a clock that goes on.
func (f *FleetShare) Demand(elapsed time.Duration) (all []FleetDemand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seconds := (elapsed - f.last).Seconds()
	f.last = elapsed
	keys := f.keys.Load()
	if keys == nil || seconds <= 0 {
		return nil
	}
	for id, k := range keys.byID {
		k.count(seconds)
		all = append(all, FleetDemand{Key: id, PerSecond: k.demand, Share: math.Float64frombits(k.share.Load())})
	}
	for i := range f.wanted {
		if id := f.wanted[i].Swap(0); id != 0 && keys.byID[id] == nil {
			all = append(all, FleetDemand{Key: id, PerSecond: -1, Share: f.Base()})
		}
	}
	return all
}

// Base is the part of a key that is not busy.
func (f *FleetShare) Base() float64 { return math.Float64frombits(f.base.Load()) }

// demandWeight is what the latest count weighs: noise is smoothed within about a second.
const demandWeight = 0.25

func (k *fleetKey) count(seconds float64) {
	n := int64(0)
	for i := range k.asked {
		n += k.asked[i].n.Swap(0)
	}
	latest := float64(n) / seconds
	if k.demand < 0 {
		k.demand = latest
		return
	}
	if k.demand += demandWeight * (latest - k.demand); k.demand < 1e-3 {
		k.demand = 0
	}
}

// partOf is the part of key, and notes that a busy one is asked for. id is for want; 0 = key is busy.
func (f *FleetShare) partOf(now int64, key []byte) (share float64, id uint64) {
	keys := f.keys.Load()
	if keys == nil {
		return 0, 0
	}
	id = keyed64(keys.seed, key)
	if k := keys.byID[id]; k != nil {
		k.asked[uint64(now)>>6%fleetStripes].n.Add(1)
		return math.Float64frombits(k.share.Load()), 0
	}
	return f.Base(), id
}

// want notes that a key is rejected that is not busy yet. Once it is noted nothing is written.
func (f *FleetShare) want(id uint64) {
	cell := &f.wanted[id%fleetWanted]
	if cell.Load() == 0 {
		cell.CompareAndSwap(0, id)
	}
}

// keyed64 is SipHash-1-3 (Aumasson and Bernstein, 2012) of data: the same at all who know the seed.
func keyed64(seed [2]uint64, data []byte) uint64 {
	v0, v1 := seed[0]^0x736f6d6570736575, seed[1]^0x646f72616e646f6d
	v2, v3 := seed[0]^0x6c7967656e657261, seed[1]^0x7465646279746573
	last := uint64(len(data)) << 56
	for ; len(data) >= 8; data = data[8:] {
		m := binary.LittleEndian.Uint64(data)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^m)
		v0 ^= m
	}
	for i, c := range data {
		last |= uint64(c) << (8 * i)
	}
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^last)
	v0, v2 = v0^last, v2^0xff
	for range 3 {
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	}
	return max(v0^v1^v2^v3, 1) // 0 is no key
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
