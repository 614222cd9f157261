package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// slowness is a way of slowhttptest to hold connections.
type slowness struct{ name, args string }

var slownesses = []slowness{
	{"slow headers", "-H -i 5 -x 24"},
	{"slow bodies", "-B -i 5 -s 8192 -x 10 -t POST -u {}/echo"},
	{"slow bodies of orders", "-B -i 5 -s 8192 -x 10 -t POST -u {}/api/seckill/1001/order"},
	{"ranges", "-R -a 1 -b 500 -t HEAD"},
	{"slow reading of pages", "-X -w 512 -y 1024 -n 5 -z 32 -k 1"},
	{"slow reading of 1 MiB", "-X -w 512 -y 1024 -n 5 -z 32 -k 1 -u {}/bytes?n=1048576"},
}

// SLUICE_SLOW is how many connections crawl, while a client shops beside them.
func TestConnections_SlowClientsLeaveRoomForOthers(t *testing.T) {
	testkit.Nightly(t, "it runs long, and needs slowhttptest")
	crawlers := os.Getenv("SLUICE_SLOW")
	if crawlers == "" {
		t.Skip("SLUICE_SLOW does not say how many slow connections to open")
	}
	if _, err := exec.LookPath("slowhttptest"); err != nil {
		t.Skip("slowhttptest is not installed")
	}
	shop := open(t, services())
	var rows strings.Builder
	for _, s := range slownesses {
		t.Run(s.name, func(t *testing.T) {
			g := stocked(t, shop.setting(), boundless, anonymous)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args := strings.Fields(strings.ReplaceAll("-c "+crawlers+" -r 2000 -l 20 -p 3 -u {}/page "+s.args, "{}", "http://"+
				g.front))
			crawl := exec.CommandContext(ctx, "slowhttptest", args...)
			if err := crawl.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = crawl.Wait() }() // its judgement is not ours
			row, others := beside(g)
			t.Log(row, others)
			fmt.Fprintf(&rows, "| %s | %s\n", s.name, row)
		})
	}
	if *update {
		write(t, "slow", "| slowhttptest, "+crawlers+
			" connections | open at the most | asked beside them | served | p50 | p99 | slowest |\n"+
			"| --- | --- | --- | --- | --- | --- | --- |\n"+rows.String())
	}
}

// beside shops at a modest pace, pages and orders by turns, and tells how it was served, and by what else than 200.
func beside(g *running) (row string, others tally) {
	others = tally{}
	var took []time.Duration
	open, served, paths := 0.0, 0, []string{"/page", "/api/seckill/1001/order"}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := range 900 {
		<-tick.C
		r, _ := http.NewRequest([]string{"GET", "POST"}[i%2], "http://"+g.front+paths[i%2], nil)
		start := time.Now()
		a, err := send(g.client, r)
		took = append(took, time.Since(start))
		if err == nil && a.status == http.StatusOK {
			served++
		} else {
			others[fmt.Sprint(r.Method, " ", a.status, " ", a.reason, err)]++
		}
		if i%50 == 0 {
			open = max(open, g.metric("sluice_connections"))
		}
	}
	slices.Sort(took)
	at := func(share float64) time.Duration {
		return took[int(share*float64(len(took)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%.0f | %d | %d | %v | %v | %v |", open, len(took), served, at(0.5), at(0.99), at(1)), others
}
