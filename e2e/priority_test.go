package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The shop serves one request at a time. Those that meet the condition are served before those that came first; the
// others keep a tenth of the slots, and none is rejected.
func TestPriority_RequestsThatMeetTheConditionGoFirst(t *testing.T) {
	t.Parallel()
	arrived, serve := make(chan string), make(chan struct{})
	shop := open(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("X-Who")
		<-serve
	})
	secret := strings.Repeat("a", 32)
	key := filepath.Join(t.TempDir(), "jwt.key")
	if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	g := gate(t, shop.setting(), `stock.source = "off"`, unlimited, "limits.concurrency.max_in_flight = 1",
		"limits.concurrency.queue_timeout = \"10m\"\nlimits.concurrency.priority = \"$jwt_level=vip\"",
		"upstream.timeout = \"10m\"\nupstream.response_header_timeout = \"10m\"",
		"[auth]\njwt_algorithm = \"HS256\"\njwt_key_file = \""+key+"\"\n"+fleetRoute)
	var all sync.WaitGroup
	send := func(who, claims string, queued int) {
		all.Go(func() {
			g.ask("GET", "/x", "X-Who: "+who, "Authorization: Bearer "+signedBy(secret, claims)).must(t, 200, "")
		})
		if queued > 0 {
			soon(t, "it waits", func() bool { return g.metric("sluice_queue_length") == float64(queued) })
		}
	}
	send("first", "", 0)
	got := []string{<-arrived}
	for n := 1; n <= 3; n++ {
		send("plain", `"level":"new",`, n)
	}
	for n := 4; n <= 15; n++ {
		send("vip", `"level":"vip",`, n)
	}
	for range 15 {
		serve <- struct{}{}
		got = append(got, <-arrived)
	}
	serve <- struct{}{}
	all.Wait()
	want := slices.Concat([]string{"first"}, slices.Repeat([]string{"vip"}, 9), []string{"plain"},
		slices.Repeat([]string{"vip"}, 3), []string{"plain", "plain"})
	if !slices.Equal(got, want) {
		t.Errorf("served in the order %q, want %q", got, want)
	}
}
