//go:build linux

package e2e

import (
	"io"
	"net/http"
	"os/exec"
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

	stop := make(chan struct{})
	var crowd sync.WaitGroup
	var answered atomic.Int64
	for range 8 {
		crowd.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: long}
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
	successor := start(t, old.file, exec.Command(binary, "run", "--config", old.file, "--take-over"))
	old.terminate()
	if code := old.stopped(); code != 0 {
		t.Errorf("the old gate ended with exit code %d", code)
	}
	before := answered.Load()
	soon(t, "the successor serves", func() bool { return answered.Load() > before+200 || t.Failed() })
	close(stop)
	crowd.Wait()
	t.Logf("%d requests answered; warnings of the successor: %d", answered.Load(),
		strings.Count(successor.log.String(), "WARN"))
}
