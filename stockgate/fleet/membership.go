package fleet

import (
	"slices"

	"sluice/stockgate/redisconn"
)

// members is what one beat finds in Redis, all on Redis' clock.
type members struct {
	micros int64            // now, in microseconds
	before int64            // the latest beat of this instance before this one, in milliseconds; 0 = there was none
	beats  map[string]int64 // the latest beat of each that lives, this one's included, in milliseconds
}

// membership keeps what this instance may count on. It reads no clock.
//
// A part may shrink at once. It may grow only when those who have what it grows by know that they have less, or are
// gone.
type membership struct {
	id    string
	share Share // without the clock; Of 0 = none yet
	seen  Share // what the latest heartbeat amounts to
	since int64 // since when this instance is listed without a gap, in ms; 0 = it has been for long
	again bool  // there was something to be seen before that gap
	clock redisconn.Clock
	beats int // made
}

// update takes in what a beat has found.
func (r *membership) update(found members) {
	now := found.micros / 1000
	if found.before > now || found.before <= now-alive.Milliseconds() {
		// This instance joins, was taken for dead, or the list or the clock of Redis is another.
		r.since, r.again = now, r.seen.Of != 0
	}
	ids := make([]string, 0, len(found.beats))
	for id := range found.beats {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rank, listed := slices.BinarySearch(ids, r.id)
	if !listed {
		return // no instance writes such a list
	}
	r.seen = Share{Rank: rank, Of: len(ids)}
	if r.since != 0 && r.knownToOthers(found, now) {
		r.since = 0
	}
	if r.since == 0 || r.share.Of != 0 && r.seen.Of >= r.share.Of {
		r.share = r.seen
	}
}

// knownToOthers tells whether each of the others has seen that this instance is there, or had the time to.
func (r *membership) knownToOthers(found members, now int64) bool {
	if r.again {
		return now-r.since >= heardAgain.Milliseconds() // those who were there may not have come back yet
	}
	if now-r.since >= heardAll.Milliseconds() {
		return true
	}
	for id, at := range found.beats {
		if id != r.id && at <= r.since {
			return false
		}
	}
	return true
}

// waiting tells whether this instance has no part yet.
func (r *membership) waiting() bool { return r.share.Of == 0 }

// startAlone has this instance begin without being known: with those it has seen, if any.
func (r *membership) startAlone() {
	if r.share = r.seen; r.seen.Of == 0 {
		r.share = Share{Of: 1}
	}
}
