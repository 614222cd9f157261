package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/stockgate/redisconn"
)

// One master of a cluster is away. What knows all SKUs says so, names one of those that wait, and goes on with the
// others.
func TestSettlement_MasterThatIsAwayIsTold(t *testing.T) {
	t.Parallel()
	nodes, shop := redistest.Cluster(t, 3), open(t, nil)
	redis := "name = \"shop\"\nstock.source = \"redis\"\nstock.redis.addresses = " + quoted(nodes.Addrs()...) +
		"\nstock.redis.timeout = \"1s\""
	owner := func(tag string) *redistest.Server { return nodes.Owner(redistest.Slot(redisconn.Tag(tag))) }
	of := func(node *redistest.Server) string {
		for i := 1001; ; i++ {
			if sku := fmt.Sprint(i); owner("{"+sku+"}") == node {
				return sku
			}
		}
	}
	dies := slices.IndexFunc(nodes.Masters, func(s *redistest.Server) bool { // has nothing but SKUs
		return s != owner("sluice:shop:skus") && s != owner("sluice:shop:claim")
	})
	lives, dead := of(owner("sluice:shop:skus")), of(nodes.Masters[dies])
	g := gate(t, redis, boundless, shop.setting(), keepsChanges, reserveRoutes)
	s := settler(t, "sqlite:"+filepath.Join(t.TempDir(), "s.db"), redis)
	for _, sku := range []string{lives, dead} {
		ok(t, "stock", "set", "--admin", g.admin, sku, "50")
		if a := g.ask("POST", "/api/seckill/"+sku+"/order", "Cookie: uid=1"); a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", sku, a.status, a.body)
		}
		soon(t, "both are settled", func() bool {
			return strings.Contains(settle(t, "verify", sku, "--config", s.file).out, "equal; 1 records")
		})
	}
	soon(t, "all is well", func() bool {
		status, text := s.peek("/readyz")
		return status == http.StatusOK && strings.HasPrefix(text, "ready")
	})
	nodes.Masters[dies].Kill()
	soon(t, "the settler tells of which SKUs changes stay in Redis", func() bool {
		status, text := s.peek("/readyz")
		return status == http.StatusOK &&
			strings.HasPrefix(text, fmt.Sprintf("degraded; ledgers: changes of %q stay in Redis: ", dead))
	})
	if a := g.ask("POST", "/api/seckill/"+lives+"/order", "Cookie: uid=2"); a.status != http.StatusOK {
		t.Fatalf("the SKU that lives: %d %s", a.status, a.body)
	}
	soon(t, "the SKU that lives is settled, and compared", func() bool {
		all := settle(t, "verify", "--config", s.file)
		return all.code != 0 && strings.Contains(all.out, "equal; 2 records") &&
			strings.Contains(all.complaint, "not compared: "+dead+": ")
	})
	shows := settle(t, "status", "--config", s.file)
	if !strings.Contains(shows.complaint, "are not known of "+dead+": ") {
		t.Errorf("status complains: %s", shows.complaint)
	}
	for _, line := range strings.Split(shows.out, "\n") {
		if f := strings.Fields(line); len(f) > 2 && (f[0] == lives && f[2] != "0" || f[0] == dead && f[2] != "?") {
			t.Errorf("status: %s", line)
		}
	}
}
