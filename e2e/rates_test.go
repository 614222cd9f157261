package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// behindProxy makes this machine a trusted proxy, so that one client can speak for many.
const behindProxy = `server.trusted_proxies = ["127.0.0.0/8"]
stock.source = "off"
`

// limited are routes on which a keyed rate gives everybody three requests an hour.
const limited = `
[[limits.rate]]
name = "per-ip"
rate = "3/h"
burst = 3

[[route]]
name = "api"
match = "/api/"
gate = "limit"

[[route]]
name = "rest"
match = "/"
gate = "pass"
`

// by sends a request on behalf of a client.
func (g *running) by(client, target string) answer {
	g.t.Helper()
	return g.ask("GET", target, "X-Forwarded-For: "+client)
}

func TestReload_GrantsNoNewBurst(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	g := gate(t, shop.setting(), behindProxy, limited)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g.by("203.0.113.9", "/api/x").must(t, 200, "")
	}
	g.by("203.0.113.9", "/api/x").must(t, 429, "rate")
	for _, change := range []string{`rate = "3/h"`, `rate = "2/h"`, `rate = "4/h"`, "burst = 2"} {
		key, _, _ := strings.Cut(change, " ")
		lines := strings.Split(string(text), "\n")
		for i := range lines {
			if strings.HasPrefix(lines[i], key+" ") {
				lines[i] = change
			}
		}
		g.rewrite(strings.Join(lines, "\n"), true)
		g.by("203.0.113.9", "/api/x").must(t, 429, "rate")
	}
	g.by("203.0.113.10", "/api/x").must(t, 200, "")
	g.rewrite("limits.observe_only = [\"per-ip\"]\n"+string(text), true)
	g.by("203.0.113.9", "/api/x").must(t, 200, "") // the token by which the burst has grown
	g.by("203.0.113.9", "/api/x").must(t, 200, "")
	g.wantMetric(5, "sluice_rate_rejected_requests_total", `rate="per-ip"`)
	g.wantMetric(1, "sluice_rate_observed_rejections_total", `rate="per-ip"`)
	g.wantMetric(5, "sluice_rejected_requests_total", `route="api"`, `reason="rate"`)
	g.wantMetric(1_000_192*16, "sluice_rate_table_bytes", `rate="per-ip"`)
}

func TestAddressLists_ApplyFromTheNextRequestOn(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "deny.txt")
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("# none yet\n")
	shop := open(t, nil)
	g := gate(t, shop.setting(), behindProxy, "limits.deny = "+quoted("file:"+list), `limits.bypass = ["198.51.100.0/24"]`,
		limited)
	g.by("203.0.113.9", "/page").must(t, 200, "")
	for range 5 {
		g.by("198.51.100.1", "/api/x").must(t, 200, "")
	}
	// The file alone changes, without a signal: it is read like the configuration.
	say("203.0.113.0/24\n")
	soon(t, "the list is read again", func() bool { return strings.Contains(g.log.String(), `"limits.deny"`) })
	before := shop.arrivals.Load()
	g.by("203.0.113.9", "/page").must(t, 403, "denied_ip")
	g.by("203.0.113.9", "/api/x").must(t, 403, "denied_ip")
	if n := shop.arrivals.Load() - before; n != 0 {
		t.Errorf("%d requests of a denied client reached the shop", n)
	}
	say("203.0.113.0/24\nnonsense\n")
	soon(t, "the bad list is told of", func() bool { return strings.Contains(g.log.String(), list+":2:") })
	g.by("203.0.113.9", "/page").must(t, 403, "denied_ip")
	text := g.control("GET", "/api/v1/top-keys?n=1", "").body
	wants(t, text, `"limit":"denied_ip"`, `"key":"203.0.113.9"`, `"rejected":3`)
}

// A flood from addresses that come once each costs no more than the table, and no other client a request.
func TestKeyedRate_FloodOfAddressesCostsTheTableAlone(t *testing.T) {
	testkit.Nightly(t, "it measures memory, and a rate in real time")
	const maxKeys = 1_000_000
	const addresses = 30_000
	shop := open(t, nil)
	g := gate(t, shop.setting(), unlogged, behindProxy, boundless,
		strings.Replace(strings.Replace(limited, "3/h", "20/s", 1), "burst = 3", "burst = 40", 1))
	c := dial(t, g.front)
	in := bufio.NewReader(c)
	// ask sends one request of each client without waiting in between, and counts the answers by status.
	ask := func(clients ...netip.Addr) map[int]int {
		var text strings.Builder
		for _, from := range clients {
			fmt.Fprintf(&text, "GET /api/x HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: %s\r\n\r\n", from)
		}
		go func() { _, _ = io.WriteString(c, text.String()) }() // what did not arrive, the reader misses
		heard := map[int]int{}
		for range clients {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Fatal(err)
			}
			heard[resp.StatusCode]++
		}
		return heard
	}
	honest := netip.MustParseAddr("2001:db8::1")
	for range 40 { // its whole burst: none of it may be lost to others
		ask(netip.MustParseAddr("2001:db8:1::1"))
	}
	before := g.resident()
	random, rejected := rand.New(rand.NewPCG(3, 4)), 0
	for range 40 {
		flood := make([]netip.Addr, addresses/40)
		for i := range flood {
			var sixteen [16]byte
			for j := range sixteen[:8] {
				sixteen[j] = byte(random.Uint32())
			}
			sixteen[0] = 0x20
			flood[i] = netip.AddrFrom16(sixteen)
		}
		if heard := ask(flood...); heard[200] != len(flood) {
			t.Fatalf("%d addresses that come once hear %v", len(flood), heard)
		}
		rejected += 1 - ask(honest)[200]
	}
	// The table is there from the start, but no page of it is in memory before it is written to.
	if grown := (g.resident() - before) << 10; grown > 16*maxKeys+16*maxKeys/2 {
		t.Errorf("memory grew by %d bytes, the table has %d", grown, 16*maxKeys)
	}
	if rejected > 0 {
		t.Errorf("of 40 requests of a client that keeps to its rate %d were rejected", rejected)
	}
}

// resident is the resident memory of the gate in KiB.
func (g *running) resident() int {
	g.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.process.Process.Pid))
	if err != nil {
		g.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				g.t.Fatal(err)
			}
			return kib
		}
	}
	g.t.Fatal("no VmRSS")
	return 0
}
