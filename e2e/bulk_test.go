package e2e

import (
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// pattern yields size bytes that repeat only after a prime number of them, so that a lost or doubled piece shows.
type pattern struct{ at, size int64 }

const period = 65_537

var cycle = func() (b [period + 64<<10]byte) {
	for i := range b {
		b[i] = byte(uint32(i%period) * 2654435761 >> 24)
	}
	return b
}()

func (p *pattern) Read(to []byte) (int, error) {
	if p.at == p.size {
		return 0, io.EOF
	}
	n := copy(to[:min(int64(len(to)), p.size-p.at)], cycle[p.at%period:])
	p.at += int64(n)
	return n, nil
}

// sum tells what came: its length and checksum.
func sum(r io.Reader) string {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	n, err := io.Copy(h, r)
	return fmt.Sprint(n, " ", h.Sum32(), " ", err)
}

func TestForward_LargeBodiesPassWhole(t *testing.T) {
	t.Parallel()
	passLargeBodies(t, 8<<20)
}

// SLUICE_MIB is how much to send each way, in MiB.
func TestForward_LargeBodiesTakeLittleMemory(t *testing.T) {
	testkit.Nightly(t, "it measures memory")
	if more := passLargeBodies(t, int64(scaled("SLUICE_MIB", 64))<<20); more > 20 {
		t.Errorf("the gate took %.1f MiB more", more)
	}
}

// passLargeBodies sends so many bytes each way, with a length and in chunks. It returns how many MiB the gate has
// taken for that at most.
func passLargeBodies(t *testing.T, size int64) (more float64) {
	t.Helper()
	want := sum(&pattern{size: size})
	shop := open(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			_, _ = io.WriteString(w, sum(r.Body))
			return
		}
		if r.URL.RawQuery == "counted" {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		}
		_, _ = io.Copy(w, &pattern{size: size}) // its reader sees if it is cut
	})
	g := gate(t, shop.setting(), unhurried, `server.read_timeout = "10m"`)
	g.client.Timeout = 0
	g.ask("PUT", "/a").must(t, 200, "")
	first := g.peak()
	for _, way := range []struct {
		name   string
		length int64 // of the upload; -1 = in chunks
		query  string
	}{{"counted", size, "counted"}, {"in chunks", -1, ""}} {
		r, err := http.NewRequest("PUT", "http://"+g.front+"/up", &pattern{size: size})
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = way.length
		if a, err := send(g.client, r); err != nil || a.body != want {
			t.Errorf("up, %s: the shop got %q, want %q: %v", way.name, a.body, want, err)
		}
		up := g.peak()
		resp, err := g.client.Get("http://" + g.front + "/down?" + way.query)
		if err != nil {
			t.Fatal(err)
		}
		if got := sum(resp.Body); got != want {
			t.Errorf("down, %s: got %q, want %q", way.name, got, want)
		}
		resp.Body.Close()
		t.Logf("%d MiB %s: %.1f MiB more at the most after the upload, %.1f after the download", size>>20, way.name, up-first,
			g.peak()-first)
	}
	return g.peak() - first
}

// peak is the most that the gate's process has had resident so far, in MiB; 0 where the system does not tell.
func (g *running) peak() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.process.Process.Pid))
	for line := range strings.Lines(string(text)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}
