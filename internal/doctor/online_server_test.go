package doctor

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/admin"
	"sluice/internal/redistest"
	"sluice/internal/storetest"
	"sluice/internal/testkit"
)

func TestOnlineServer_VersionsAreCompared(t *testing.T) {
	for version, want := range map[string]bool{"6.0.16": true, "5.9": true, "6.2.0": false, "7.2.4": false, "10.0": false,
		"unknown": false} {
		if got := older(version, 6, 2); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestOnlineServer_RedisThatKeepsNothingIsTold(t *testing.T) {
	text, _ := tried(t, storetest.Reserving(redistest.Start(t).Addr))
	contains(t, text, "warn disk      nothing is kept on disk", "CONFIG SET appendonly yes", "ok   version", "ok   clock",
		"ok   rights")
	text, _ = tried(t, storetest.Reserving(redistest.Start(t, "--appendonly", "yes").Addr))
	contains(t, text, "ok   disk      changes are kept")
}

func TestOnlineServer_ReplicasAreHeldAgainstWhatIsWaitedFor(t *testing.T) {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr)
	c := storetest.Reserving(master.Addr)
	c.Stock.Redis.WaitReplicas = 1
	text, failed := tried(t, c)
	contains(t, text, "FAIL replicas  "+master.Addr+" has 0 replicas, and stock.redis.wait_replicas is 1")
	if !failed {
		t.Error("nothing failed")
	}
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	testkit.Eventually(t, "it follows", func() bool {
		return strings.Contains(replica.Client.Info(context.Background(), "replication").Val(), "master_link_status:up")
	})
	text, _ = tried(t, c)
	contains(t, text, "ok   replicas  "+master.Addr+" has 1 replicas", "goes on taking orders when its replicas have left",
		"min-replicas-to-write 1")
	text, _ = tried(t, storetest.Reserving(replica.Addr))
	contains(t, text, "FAIL replicas  "+replica.Addr+" is a replica of "+host+":"+port)
}

func TestOnlineServer_ReplicasThatAreReadAreMeasured(t *testing.T) {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(master.Addr)
	replica, stray := redistest.Start(t, "--replicaof", host+" "+port), redistest.Start(t)
	c := storetest.Reserving(master.Addr)
	c.Stock.Redis.MaxStaleness = time.Minute
	c.Stock.Redis.Replicas = []string{replica.Addr}
	testkit.Eventually(t, "it follows", func() bool {
		return strings.Contains(replica.Client.Info(context.Background(), "replication").Val(), "master_link_status:up")
	})
	text, _ := tried(t, c)
	contains(t, text, "ok   replicas  "+replica.Addr+" is ", "behind its master; stock is read there")
	c.Stock.Redis.Replicas = []string{stray.Addr}
	text, failed := tried(t, c)
	contains(t, text, "FAIL replicas  stock is not read from "+stray.Addr, "is a master, and follows no other")
	if !failed {
		t.Error("nothing failed")
	}
}

func TestOnlineServer_MissingRightsAreNamedWithTheWayOut(t *testing.T) {
	server := redistest.Start(t)
	for rights, says := range map[string][]string{
		"~sluice:shop:* &* +@all -xadd -wait": {"FAIL rights    this user may not run xadd wait; redis-cli ACL " +
			"SETUSER … +xadd +wait"},
		"~other:* &* +@all": {"FAIL rights    this user may not touch the gateway's own keys",
			"~sluice:shop:* &sluice:shop:*"},
		"~* &* +@all -info": {"warn version", "warn disk", "ok   rights"},
		"~* &* +@all -time": {"warn clock"},
	} {
		words := []any{"acl", "setuser", "app", "reset", "on", "nopass"}
		for _, word := range strings.Fields(rights) {
			words = append(words, word)
		}
		if err := server.Client.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
		c := storetest.Reserving(server.Addr)
		c.Stock.Redis.Username, c.Stock.Redis.Password = "app", "any"
		var out strings.Builder
		o := Report{Each: func(f admin.Finding) { out.WriteString(Line(f)) }}
		_ = o.Try(t.Context(), c)
		contains(t, out.String(), says...)
	}
}

func TestOnlineServer_CheckLeavesNoKeyBehind(t *testing.T) {
	server := redistest.Start(t)
	tried(t, storetest.Reserving(server.Addr))
	for _, key := range server.Client.Keys(t.Context(), "*").Val() {
		t.Errorf("%s is left", key)
	}
}

func TestOnlineServer_TargetsAreTried(t *testing.T) {
	c := storetest.Reserving(redistest.Start(t).Addr)
	c.Stock.Source = "memory"
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer shop.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	c.Upstream.Targets = []string{shop.URL, "http://" + closed.Addr().String()}
	text, failed := tried(t, c)
	contains(t, text, "ok   target    "+shop.URL+" takes connections", "FAIL target    http://"+closed.Addr().String(),
		"start the upstream")
	if !failed {
		t.Error("nothing failed")
	}
	c.Upstream.Targets = c.Upstream.Targets[:1]
	for path, says := range map[string]string{"/health": "answers 200", "/": "answers 404, and not "} {
		c.Upstream.Health.Path = path
		text, failed := tried(t, c)
		contains(t, text, says)
		if failed != (path == "/") {
			t.Errorf("%s: failed is %v", path, failed)
		}
	}
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	c.Upstream.Targets, c.Upstream.Health.Path = []string{strings.Replace(secure.URL, "https", "http", 1)}, ""
	if text, failed = tried(t, c); !failed {
		t.Error("http:// to a port that wants TLS is no failure")
	}
	contains(t, text, "write "+secure.URL)
}

func TestOnlineServer_FindingsAreToldInJSON(t *testing.T) {
	var out strings.Builder
	o := Report{SKUs: []string{"1001"}}
	if err := o.Try(t.Context(), storetest.Reserving(redistest.Start(t).Addr)); err != nil {
		t.Fatal(err)
	}
	if err := o.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var told struct {
		OK       bool
		Findings []admin.Finding
	}
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if told.OK || len(told.Findings) < 5 {
		t.Errorf("%+v", told)
	}
}
