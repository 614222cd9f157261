package proxy

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"sluice/limiter"
)

// handset sends one request after the other, each from whom it likes, through a proxy that is trusted.
type handset struct {
	script
	text []byte
}

func (h *handset) Read(p []byte) (int, error) { return copy(p, h.text), nil }

// sending returns what sends a request from an address to p, and tells the status of the answer.
func sending(p *Proxy) func(from netip.Addr) (status int) {
	s := NewServer(p, ServerOptions{MaxHeader: 16 << 10, Connections: anyNumber{}})
	hand := &handset{}
	c := &Conn{Conn: hand, server: s, peer: netip.MustParseAddr("127.0.0.1"), trusted: true, shared: true, shard: p.counts.shard()}
	c.reader = s.guard.Load().NewReader(socket{c})
	x := newExchange()
	x.conn = c
	return func(from netip.Addr) int {
		hand.text = append(hand.text[:0], "GET /search/ HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: "...)
		hand.text = append(from.AppendTo(hand.text), "\r\n\r\n"...)
		x.clear()
		if err := c.readHead(&x.asked); err != nil {
			panic(err)
		}
		p.handle(x)
		if x.reply.status != 0 {
			return x.reply.status
		}
		return x.resp.StatusCode()
	}
}

// Two million addresses come within 20 seconds, each once. Nothing grows beyond the table that max_keys fixes; a client
// that keeps to the rate does not feel them, and one that exceeds it gains nothing by them.
func TestAFloodOfAddressesIsFeltByNobodyElse(t *testing.T) {
	addresses, over := 2_000_000, 20*time.Second
	if raceEnabled {
		addresses /= 20
	}
	const perSecond, burst, maxKeys = 20, 40, 1_000_000
	o := options(shopFunc(answering))
	now := int64(0)
	o.Now = func() int64 { return now }
	o.Trusted = prefixes("127.0.0.0/8")
	o.Rates = []KeyedRate{{
		Name: "per-ip", Key: "$remote_addr", IPv4Prefix: 32, IPv6Prefix: 64, Burst: burst, PerSecond: perSecond,
		Tokens: limiter.NewRate(limiter.RateSpec{PerSecond: perSecond, Burst: burst, MaxKeys: maxKeys}),
	}}
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	send, random := sending(p), rand.New(rand.NewPCG(1, 2))
	honest, greedy := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::1")
	sent, admitted := map[netip.Addr]int{}, map[netip.Addr]int{}
	turn := func(from netip.Addr) {
		sent[from]++
		if send(from) == 200 {
			admitted[from]++
		}
	}
	turn(honest)
	turn(greedy)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range addresses {
		now = int64(over) * int64(i) / int64(addresses)
		var sixteen [16]byte
		binary.NativeEndian.PutUint64(sixteen[:], random.Uint64())
		sixteen[0] = 0x20
		send(netip.AddrFrom16(sixteen))
		for ; sent[honest] < int(now/int64(time.Second/10)); turn(honest) { // half of the rate
		}
		for ; sent[greedy] < int(now/int64(time.Second/200)); turn(greedy) { // ten times the rate
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*maxKeys/4 && !raceEnabled {
		t.Errorf("%d bytes were allocated beside the table", grown)
	}
	if n, of := admitted[honest], sent[honest]; of < 100 || n*100 < of*99 {
		t.Errorf("of %d requests of a client that keeps to the rate %d were admitted", of, n)
	}
	if most := perSecond*int(over/time.Second) + burst; admitted[greedy] > most || admitted[greedy] < most*98/100 {
		t.Errorf("of %d requests of a client that exceeds the rate %d were admitted; it has "+strconv.Itoa(most), sent[greedy], admitted[greedy])
	}
}
