package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/internal/dbtest"
	"sluice/internal/redistest"
)

// Behind a PgBouncer each transaction may run on another connection to the server.
func TestSettlement_WorksBehindPgBouncer(t *testing.T) {
	t.Parallel()
	followsToTheWebhook(t, dbtest.PgBouncer(t, dbtest.Postgres(t)))
}

func followsToTheWebhook(t *testing.T, postgres *dbtest.Server) {
	t.Helper()
	const orders = 20
	redis, shop := redistest.Start(t), open(t, nil)
	var mu sync.Mutex
	var got []string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var job struct{ Kind, User, SKU string }
		err := json.NewDecoder(r.Body).Decode(&job)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, job.Kind+" "+job.SKU+" "+job.User)
		if err != nil || r.Header.Get("Sluice-Webhook-Signature") == "" {
			t.Errorf("%+v, %v", r.Header, err)
		}
	}))
	defer receiver.Close()
	jobs := func() []string { mu.Lock(); defer mu.Unlock(); return slices.Sorted(slices.Values(got)) }
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	g := reserves(t, redis, orders, shop.setting(), keepsChanges)
	jobSettings := []string{"settle.jobs.kinds = [\"order.sold\"]",
		"settle.jobs.url = \"" + receiver.URL + "\"", "settle.jobs.key_file = \"" + key + "\""}
	s := settler(t, postgres.URL, append(jobSettings, redisAt(redis))...)
	wants(t, settleOK(t, "migrate", "--print", "--config", s.file), "CREATE TABLE sluice_order", "river_job(")
	wants(t, settleOK(t, "migrate", "--config", s.file), "applied 00001_settlement.sql", "applied river 002")
	work := settles(t, "work", "settle.jobs.listen", postgres.URL, append(jobSettings, redisAt(redis))...)
	var want []string
	for i := range orders {
		b := &buyer{user: fmt.Sprint("ann", i), sku: "1001"}
		defer b.leave()
		if status, reason := b.buy(g.front); status != http.StatusOK {
			t.Errorf("%d %s", status, reason)
		}
		want = append(want, "order.sold 1001 "+b.user)
		if len(want)%5 == 0 { // some are settled together, and not all
			soon(t, "the webhook has the jobs", func() bool { return len(jobs()) >= len(want) })
		}
	}
	soon(t, "the worker tells how many jobs it has sent, and that the database answers", func() bool {
		_, text := work.peek("/readyz")
		return strings.HasPrefix(text, "ready") && strings.Contains(work.scrape(),
			fmt.Sprintf("\nsluice_settler_job_requests_total{code=\"2xx\"} %d\n", orders)) &&
			strings.Contains(work.scrape(), "\nsluice_settler_jobs{state=\"available\"} 0\n")
	})
	if slices.Sort(want); !slices.Equal(jobs(), want) {
		t.Errorf("the webhook has got %q", jobs())
	}
	wants(t, settleOK(t, "verify", "1001", "--config", s.file), fmt.Sprintf("equal; %d records", orders))
	soon(t, "the settler is ready", func() bool {
		_, text := s.peek("/readyz")
		return strings.HasPrefix(text, "ready")
	})
	sqlite := file(t, "upstream.targets = [\"http://127.0.0.1:1\"]\nsettle.database = \"sqlite:a.db\"\n"+
		"settle.jobs.kinds = [\"order.sold\"]\n"+keepsChanges+"\n"+redisAt(redis)+"\n"+reserveRoutes)
	if out := settle(t, "work", "--config", sqlite); out.code == 0 ||
		!strings.Contains(out.complaint, "needs PostgreSQL") {
		t.Errorf("with SQLite: %+v", out)
	}
}
