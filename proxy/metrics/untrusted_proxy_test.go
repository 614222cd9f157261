package metrics

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
)

// traffic sends requests from so many addresses through a detector and returns what it logs.
type traffic struct {
	detector *UntrustedProxyDetector
	out      bytes.Buffer
	sampled  int
	now      int64
}

func newTraffic() *traffic {
	tr := new(traffic)
	tr.detector = NewUntrustedProxyDetector("X-Forwarded-For", slog.New(slog.NewTextHandler(&tr.out, nil)))
	return tr
}

func (tr *traffic) send(requests, addresses int, namesClient bool) (warnings int) {
	for i := range requests {
		tr.now++
		if tr.detector.Samples(tr.now) {
			tr.sampled++
			peer := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % addresses)})
			tr.detector.Observe(tr.now, peer, namesClient)
		}
	}
	return strings.Count(tr.out.String(), "server.trusted_proxies")
}

func TestUntrustedProxyDetector_WarnsWithin100Requests(t *testing.T) {
	for _, tt := range []struct {
		name        string
		addresses   int
		namesClient bool
		want        int
	}{
		{"one proxy", 1, true, 1},
		{"three proxies", 3, true, 1},
		{"many clients", 100, true, 0},
		{"one client", 1, false, 0},
	} {
		tr := newTraffic()
		if got := tr.send(100, tt.addresses, tt.namesClient); got != tt.want {
			t.Errorf("%s: %d warnings, want %d: %s", tt.name, got, tt.want, &tr.out)
		}
		if tt.want > 0 && !strings.Contains(tr.out.String(), "address=10.0.0.0") {
			t.Errorf("%s: the warning names no address: %s", tt.name, &tr.out)
		}
	}
}

func TestUntrustedProxyDetector_SamplesOneIn64AfterItsFirstJudgement(t *testing.T) {
	tr := newTraffic()
	tr.send(proxySamples, 100, false)
	if tr.sampled != proxySamples {
		t.Errorf("%d of the first %d requests are sampled", tr.sampled, proxySamples)
	}
	tr.sampled = 0
	if got := tr.send(64*proxySamples, 1, true); got != 1 || tr.sampled != proxySamples {
		t.Errorf("%d warnings after %d more samples, want 1 after %d", got, tr.sampled, proxySamples)
	}
}

func TestUntrustedProxyDetector_RepeatsAfterItsPause(t *testing.T) {
	tr := newTraffic()
	tr.send(100, 1, true)
	if got := tr.send(10*64*proxySamples, 1, true); got != 1 {
		t.Errorf("%d warnings within the pause, want 1", got)
	}
	tr.now += proxyWarningPause
	if got := tr.send(2*64*proxySamples, 1, true); got != 2 {
		t.Errorf("%d warnings after the pause, want 2", got)
	}
}

func TestUntrustedProxyDetector_SampleNeitherWaitsNorAllocates(t *testing.T) {
	d := NewUntrustedProxyDetector("X-Forwarded-For", slog.New(slog.DiscardHandler))
	peer := netip.MustParseAddr("10.0.0.1")
	if n := testing.AllocsPerRun(1000, func() { d.Observe(0, peer, false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	d.mu.Lock()
	d.Observe(0, peer, true)
	d.mu.Unlock()
}
