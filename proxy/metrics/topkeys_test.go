package metrics

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/proxy/reject"
)

func asText(text string) func([]byte) []byte {
	return func(dst []byte) []byte { return append(dst, text...) }
}

func TestTopKeys_ListsTheKeysWithMostRejections(t *testing.T) {
	c := NewCounters(2)
	for _, r := range []struct {
		client string
		times  int
	}{{"2001:db8:bad:1::5", 5}, {"2001:db8:bad:1::6", 5}, {"198.51.100.1", 1}} {
		for range r.times {
			c.Shard().RejectedClient(reject.DeniedIP, netip.MustParseAddr(r.client), 0)
		}
	}
	c.Shard().RejectedClient(reject.ConnRate, netip.Addr{}, 0)
	for _, r := range []struct {
		limit, key string
		times      int
	}{{"per-ip", "203.0.113.0/24", 6}, {"per-ip", "192.0.2.0/24", 3}, {"per-item", "192.0.2.0/24 tea", 3}} {
		for range r.times {
			c.Shard().RejectedKey(r.limit, []byte(r.key), 0, asText(r.key))
		}
	}
	want := []TopKey{
		{"denied_ip", "2001:db8:bad:1::/64", 10}, {"per-ip", "203.0.113.0/24", 6},
		{"per-ip", "192.0.2.0/24", 3}, {"per-item", "192.0.2.0/24 tea", 3},
		{"conn_rate", "local", 1}, {"denied_ip", "198.51.100.1", 1},
	}
	if diff := cmp.Diff(want, c.TopKeys(100, 0)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:2], c.TopKeys(2, 0)); diff != "" {
		t.Errorf("the top two (-want +got):\n%s", diff)
	}
	if len(c.TopKeys(0, 0)) != 0 || len(c.TopKeys(-1, 0)) != 0 {
		t.Error("keys are listed that were not asked for")
	}
}

func TestTopKeys_LongTextIsCut(t *testing.T) {
	c := NewCounters(1)
	long := strings.Repeat("x", 10*maxTopKey)
	c.Shard().RejectedKey("per-item", []byte(long), 0, asText(long))
	if got := c.TopKeys(1, 0)[0].Key; got != long[:maxTopKey] {
		t.Errorf("the key is %q", got)
	}
}

// A key with more than an eighth of its set's rejections is present, whatever else is rejected, and never with more
// rejections than it had.
func TestTopKeys_FrequentKeyIsNotDisplaced(t *testing.T) {
	var top topKeys
	const frequent, total = 4, 100_000
	rejected := map[topKeyID]uint64{}
	for i := range total {
		id := topKeyID{"r", uint64(i)*0x9e3779b97f4a7c15 | 1<<63}
		if i%5 == 0 {
			id = topKeyID{"r", uint64(i / 5 % frequent)} // each is a twentieth of all, in a set of its own
		}
		rejected[id]++
		e := top.count(id, 0)
		e.length = copy(e.text[:], fmt.Sprint(id.hash))
		if e.count-e.inherited > rejected[id] {
			t.Fatalf("%v was rejected %d times and is listed with %d", id, rejected[id], e.count-e.inherited)
		}
	}
	listed := map[topKeyID]TopKey{}
	top.addTo(listed, 0)
	if most := topKeySets * topKeyWays; len(listed) > most {
		t.Errorf("%d keys are kept, want at most %d", len(listed), most)
	}
	for i := range uint64(frequent) {
		id := topKeyID{"r", i}
		if got := listed[id].Rejected; got < rejected[id]*9/10 {
			t.Errorf("%v was rejected %d times and is listed with %d", id, rejected[id], got)
		}
	}
}

func TestTopKeys_CountsAreHalvedEachMinute(t *testing.T) {
	id := topKeyID{"r", 1}
	for minutes, want := range map[int64]uint64{0: 100, 1: 50, 3: 12, 7: 0, 100: 0} {
		var top topKeys
		for range 100 {
			top.count(id, 0)
		}
		listed := map[topKeyID]TopKey{}
		top.addTo(listed, minutes*int64(time.Minute))
		if got := listed[id].Rejected; got != want {
			t.Errorf("after %d minutes: %d, want %d", minutes, got, want)
		}
	}
}

func TestTopKeys_RejectionNeitherWaitsNorAllocates(t *testing.T) {
	c := NewCounters(1)
	s := c.Shard()
	clients := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	key, n := make([]byte, 8), uint64(0)
	step := func() {
		n++
		key[n%8]++ // often a new key
		s.RejectedKey("per-ip", key, 0, func(dst []byte) []byte { return append(dst, key...) })
		s.RejectedClient(reject.DeniedIP, clients[n%2], 0)
	}
	step()
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
	s.top.mu.Lock()
	step()
	s.top.mu.Unlock()
}

func TestCounters_AppendHashHidesTheValue(t *testing.T) {
	c, other := NewCounters(1), NewCounters(1)
	a, again, b := c.AppendHash(nil, []byte("alice")), c.AppendHash(nil, []byte("alice")), c.AppendHash(nil, []byte("bob"))
	if string(a) != string(again) || string(a) == string(b) || a[0] != '#' || strings.Contains(string(a), "alice") {
		t.Errorf("the hashes are %s, %s and %s", a, again, b)
	}
	if string(other.AppendHash(nil, []byte("alice"))) == string(a) {
		t.Error("two processes have the same hash")
	}
}

func BenchmarkShard_RejectedClient(b *testing.B) {
	s := NewCounters(1).Shard()
	client := netip.MustParseAddr("192.0.2.1")
	b.ReportAllocs()
	for b.Loop() {
		s.RejectedClient(reject.DeniedIP, client, 0)
	}
}
