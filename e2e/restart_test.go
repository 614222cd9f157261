//go:build linux

package e2e

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// No shopper notices that another process has taken the port over.
func TestRestart_SuccessorTakesThePortOverWithoutALoss(t *testing.T) {
	t.Parallel()
	shop := open(t, nil)
	addresses, front := fixed(t)
	old := gate(t, addresses, shop.setting(), `stock.source = "off"`, unlimited,
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	if s := run(t, "", "run", "--config", old.file); s.code != 1 || !strings.Contains(s.complaint, "--take-over") {
		t.Errorf("a second gate on the same port: exit code %d, %s", s.code, s.complaint)
	}

	answered, leave := shoppers(t, front, false)
	successor := start(t, old.file, exec.Command(binary, "run", "--config", old.file, "--take-over"))
	old.terminate()
	if code := old.stopped(); code != 0 {
		t.Errorf("the old gate ended with exit code %d", code)
	}
	before := answered.Load()
	soon(t, "the successor serves", func() bool { return answered.Load() > before+200 || t.Failed() })
	leave()
	t.Logf("%d requests answered; warnings of the successor: %d", answered.Load(),
		strings.Count(successor.log.String(), "WARN"))
}

// A successor that cannot start takes no connection away from the gate that runs.
func TestRestart_SuccessorThatFailsTakesNothing(t *testing.T) {
	t.Parallel()
	shop, taken := open(t, nil), strings.TrimPrefix(nowhere(t), "http://")
	addresses, front := fixed(t)
	rest := []string{shop.setting(), `stock.source = "off"`, unlimited,
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\""}
	old := gate(t, append([]string{addresses}, rest...)...)
	socket := filepath.Join(t.TempDir(), "socket")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	answered, leave := shoppers(t, front, true)
	defer leave()
	text := "server.listen = [" + strconv.Quote(front) + "]\n" + strings.Join(rest[:3], "\n") + "\n"
	const alone = "admin.listen = \"127.0.0.1:0\"\n"
	for name, c := range map[string]struct{ settings, complaint string }{
		"admin.listen": {"admin.listen = " + strconv.Quote(taken) + "\n" + text, "admin.listen"},
		"decide": {alone + text + "[[decide]]\ndialect = \"nginx\"\nlisten = " + strconv.Quote(taken) + "\n",
			"decide"},
		"a unix socket": {alone + strings.Replace(text, "]", ", "+strconv.Quote("unix:"+socket)+"]", 1), "not taken over"},
	} {
		file := file(t, "ops.listen = \"127.0.0.1:0\"\n"+c.settings+rest[3]+"\n")
		for range 3 {
			before := answered.Load()
			s := run(t, "", "run", "--config", file, "--take-over")
			if s.code != 1 || !strings.Contains(s.complaint, c.complaint) {
				t.Errorf("%s: exit code %d, %s", name, s.code, s.complaint)
			}
			soon(t, "shoppers are served", func() bool { return answered.Load() > before+50 || t.Failed() })
		}
	}
	if old.gone() {
		t.Error("the gate has gone")
	}
}

// shoppers ask for a page again and again until leave is called; anew has each request open a connection. No answer may
// fail.
func shoppers(t *testing.T, front string, anew bool) (answered *atomic.Int64, leave func()) {
	t.Helper()
	stop := make(chan struct{})
	var crowd sync.WaitGroup
	answered = new(atomic.Int64)
	for range 8 {
		crowd.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1, DisableKeepAlives: anew}, Timeout: long}
			defer client.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Get("http://" + front + "/")
				if err != nil {
					t.Errorf("a shopper noticed: %v", err)
					return
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
					t.Errorf("a shopper noticed: %d, %v", resp.StatusCode, err)
				}
				resp.Body.Close()
				answered.Add(1)
			}
		})
	}
	return answered, sync.OnceFunc(func() {
		close(stop)
		crowd.Wait()
	})
}
