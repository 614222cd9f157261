package ledger

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func bySerial(size int) *orderCache {
	return newOrderCache(size, func(k *knownOrder) string { return k.Serial })
}

// What is found is what was kept last under that name, and not beyond its time; of a place that is never full nothing
// is lost.
func TestOrderCache_MemoryFindsWhatWasKeptAndNothingElse(t *testing.T) {
	lines := []*skuQueue{{sku: "1001", hash: 1}, {sku: "1002", hash: 1}}
	rapid.Check(t, func(t *rapid.T) {
		m, kept := bySerial(cacheWays), map[string]*knownOrder{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			l := lines[rapid.IntRange(0, 1).Draw(t, "line")]
			serial := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "serial")
			name, now := l.sku+serial, int64(100)
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				k := &knownOrder{
					queue: l,
					Item:  Item{Serial: serial},
					until: rapid.SampledFrom([]int64{50, 100, 101, 1 << 40}).Draw(t, "until"),
				}
				m.keep(k)
				kept[name] = k
			case 1:
				m.forget(&knownOrder{queue: l, Item: Item{Serial: serial}})
				delete(kept, name)
			}
			want := kept[name]
			if want != nil && now >= want.until {
				want = nil
			}
			if got := m.find(now, l, []byte(serial)); got != want {
				t.Fatalf("%s: found %v, kept %v", name, got != nil, want != nil)
			}
		}
	})
}

func TestOrderCache_FullMemoryForgetsFirstWhatWouldBeForgottenFirst(t *testing.T) {
	m, l := bySerial(cacheWays), &skuQueue{sku: "1001"}
	for i := range cacheWays {
		m.keep(&knownOrder{queue: l, Item: Item{Serial: fmt.Sprint(i)}, until: int64(i+1) << 32})
	}
	m.keep(&knownOrder{queue: l, Item: Item{Serial: "new"}, until: 1 << 40})
	for i := range cacheWays {
		if found := m.find(0, l, []byte(fmt.Sprint(i))) != nil; found != (i > 0) {
			t.Errorf("%d is found: %v", i, found)
		}
	}
	if m.find(0, l, []byte("new")) == nil {
		t.Error("the new one is lost")
	}
}

// A goroutine that keeps an order while others do may lose it, but finds no other's.
func TestOrderCache_MemoryIsSharedWithoutMixingOrdersUp(t *testing.T) {
	m, l := bySerial(2*cacheWays), &skuQueue{sku: "1001"}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2_000 {
				k := &knownOrder{queue: l, Item: Item{Serial: fmt.Sprint((i + g) % 40)}, until: 1 << 40}
				m.keep(k)
				if got := m.find(0, l, []byte(k.Serial)); got != nil && got.Serial != k.Serial {
					t.Errorf("%s was found for %s", got.Serial, k.Serial)
				}
				if i%7 == 0 {
					m.forget(k)
				}
			}
		})
	}
	all.Wait()
}

// A derived serial is what its doc says, whatever other goroutines derive meanwhile. It must not change with the
// version: a sale that is under way would sell to its buyers again.
func TestOrderCache_DerivedSerialIsACodeOfSKUUserSaleAndGeneration(t *testing.T) {
	d := opened(t, testOptions(), newFakeStore(), nil)
	plainly := func(sku, user string, sale int64, generation int) string {
		mac := hmac.New(sha256.New, testOptions().Secret)
		parts := [][]byte{[]byte(sku), []byte(user), binary.BigEndian.AppendUint64(nil, uint64(generation))}
		if sale > 0 {
			parts = append(parts, binary.BigEndian.AppendUint64(nil, uint64(sale)))
		}
		for _, part := range parts {
			mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			mac.Write(part)
		}
		return strings.ToLower(base32.StdEncoding.EncodeToString(mac.Sum(nil)[:20]))
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				user := strings.Repeat(fmt.Sprint(i), g)
				sale := int64(i % 3)
				got, want := d.derive([]byte("1001"), []byte(user), sale, i), plainly("1001", user, sale, i)
				if got != want {
					t.Errorf("%s, not %s", got, want)
				}
			}
		})
	}
	all.Wait()
}
