package stockgate

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
	"sluice/stockgate/layout"
)

// alike reads skus in both ways, and fails where they differ in anything, the words of a fault included.
func alike(t *testing.T, s Source, skus ...string) []layout.Reading {
	t.Helper()
	once, again := make([]layout.Reading, len(skus)), make([]layout.Reading, len(skus))
	testkit.Check(t, s.Read(t.Context(), skus, once))
	testkit.Check(t, s.ReadUncached(t.Context(), skus, again))
	for i, sku := range skus {
		if fmt.Sprint(once[i]) != fmt.Sprint(again[i]) {
			t.Errorf("%q reads %+v, and again %+v", sku, once[i], again[i])
		}
	}
	return again
}

func TestRedisUncached_AgainSaysWhatReadSays(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Redis) {
		testkit.Check(t, s.Set(t.Context(), "1001", 5))
		testkit.Check(t, s.Set(t.Context(), "1002", 0))
		testkit.Check(t, s.Set(t.Context(), "1003", 0))
		testkit.Must[int64](t)(s.Add(t.Context(), "1003", -7))
		out := alike(t, s, "1003", "none", "1001", "1002")
		if out[0].Left != -7 || out[1].Exists || out[2].Left != 5 || !out[3].Exists || out[3].Left != 0 {
			t.Errorf("read %+v", out)
		}
	})
}

func TestRedisUncached_AgainFindsTheFaultsOfEachKeyAndSpoilsNoOther(t *testing.T) {
	server := redistest.Start(t)
	for name, o := range map[string]layout.Options{
		"plain":    {Type: layout.Counter, Key: "$sku"},
		"reserved": {Type: layout.Counter, Key: "$sku", SoldOutAt: -3},
		"users":    {Type: layout.CounterUsers, Key: "$sku", UsersKey: "users:$sku"},
		"parts":    {Type: layout.Counter, Key: "$sku_1:$sku_2"},
		"status":   {Type: layout.Counter, Key: "$sku", StatusKey: "status:$sku", StatusOpen: []string{"1"}},
		"flag":     {Type: layout.Counter, Key: "$sku", SoldOutFlag: "over:$sku"},
		"left":     {Type: layout.HashLeft, Key: "$sku", LeftField: "a"},
		"list":     {Type: layout.List, Key: "$sku"},
		"script":   {Type: layout.Script, Key: "$sku", Script: "return redis.call('GET', KEYS[1])"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dial(t, server, o)
			setUp(t, server, "FLUSHALL", "HSET a:hash a 1", "LPUSH a:list 1", "SADD a:set 1", "SET a:text many",
				"SET a:float 1.5",
				"SET a:empty ", "SET a:plus +5", "SET a:zeros 007", "SET a:minus -0", "SET a:five 5",
				"SET a:least -9223372036854775808",
				"SET a:huge 9223372036854775808", "SET a:nought 0", "SET over:a:five 1", "SET status:a:five 1",
				"SADD users:a:five 7")
			out := alike(t, s, "a:hash", "a:none", "a:list", "a:set", "a:text", "a:float", "a:empty", "a:plus", "a:zeros",
				"a:minus", "a:least",
				"a:huge", "a:nought", ":", "a:five", "odd")
			if s.layout.Load().Together() != slices.Contains([]string{"plain", "reserved", "users", "parts"}, name) {
				t.Errorf("%s is read together: %t", name, s.layout.Load().Together())
			}
			if strings.Contains("plain parts", name) && (out[0].Fault == nil || out[1].Fault != nil || out[1].Exists ||
				out[10].Left != -1<<63 || out[14].Left != 5) {
				t.Errorf("read %+v", out)
			}
		})
	}
}

func TestRedisUncached_AgainIsOneCommandForCountersAndNoneIsReadTwice(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server, layouts()["counter"])
	var skus []string
	for i := range readAtOnce {
		skus = append(skus, string(name(i)))
		testkit.Check(t, s.Set(t.Context(), skus[i], int64(i)))
	}
	gets := server.Calls("get")
	out := make([]layout.Reading, len(skus))
	testkit.Check(t, s.ReadUncached(t.Context(), skus, out))
	if server.Calls("mget") != 1 || server.Calls("get") != gets {
		t.Errorf("%d MGETs, %d GETs", server.Calls("mget"), server.Calls("get")-gets)
	}
	for i := range skus {
		if out[i] != reading(int64(i)) {
			t.Fatalf("%s reads %+v", skus[i], out[i])
		}
	}
}

func TestRedisUncached_AgainOnAClusterAsksEachMasterForItsOwn(t *testing.T) {
	t.Parallel()
	nodes := redistest.Cluster(t, 3)
	r := clustered(t, nodes, layout.Options{Type: layout.Counter, Key: "c:$sku"})
	var skus []string
	for i := range 60 {
		skus = append(skus, strconv.Itoa(1001+i))
		testkit.Check(t, r.Set(t.Context(), skus[i], int64(i+1)))
	}
	for i, found := range alike(t, r, skus...) {
		if found.Left != int64(i+1) || found.Fault != nil {
			t.Fatalf("%s: %+v", skus[i], found)
		}
	}
	for _, master := range nodes.Masters {
		if n := triedMGETs(master); n != 0 {
			t.Errorf("%d MGETs were tried on a master that has not all keys", n)
		}
	}
}

// triedMGETs is how many a server has rejected, where it has run none.
func triedMGETs(s *redistest.Server) int64 {
	return s.Number("commandstats", "cmdstat_mget:calls=0,usec=0,usec_per_call=0.00,rejected_calls=")
}

// denied returns a Redis whose user is restricted by ACL rules, and its log.
func denied(t *testing.T, server *redistest.Server, rules ...string) (*Redis, *bytes.Buffer) {
	t.Helper()
	s, log := dial(t, server, layout.Options{Type: layout.Counter, Key: "stock:$sku"}), new(bytes.Buffer)
	s.log = slog.New(slog.NewTextHandler(log, nil))
	setUp(t, server, "SET stock:x 5", "SET stock:y 6")
	args := []any{"ACL", "SETUSER", "default"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	testkit.Check(t, server.Client.Do(t.Context(), args...).Err())
	return s, log
}

func TestRedisUncached_UserWhoMayNotRunMGETIsReadForByGETAndToldOnce(t *testing.T) {
	for what, c := range map[string]struct {
		options []string
		rules   string
	}{
		"denied":  {nil, "-mget"},
		"unknown": {[]string{"--rename-command", "mget", ""}, "+get"},
	} {
		t.Run(what, func(t *testing.T) {
			server := redistest.Start(t, c.options...)
			s, log := denied(t, server, c.rules)
			for range 5 {
				if out := alike(t, s, "x", "y", "none"); out[0] != reading(5) || out[1] != reading(6) || out[2].Exists {
					t.Fatalf("read %+v", out)
				}
			}
			if n := strings.Count(log.String(), "mget"); n == 0 || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("the log says:\n%s", log)
			}
			if n := triedMGETs(server); n > 1 {
				t.Errorf("%d MGETs were tried", n)
			}
			if !s.metrics.up.Load() {
				t.Error("Redis counts as lost")
			}
		})
	}
}

func TestRedisUncached_TheRightsOfTheManualAreEnoughForMGET(t *testing.T) {
	page, err := os.ReadFile("../docs/redis.md")
	testkit.Check(t, err)
	rights := regexp.MustCompile("the user reads the shop's keys: `([^`]*)`").FindSubmatch(page)
	if rights == nil {
		t.Fatal("docs/redis.md does not say what the user may read")
	}
	server := redistest.Start(t)
	s, log := denied(t, server, append(strings.Fields("-@all +hello +auth +ping +select +acl|setuser +info"),
		strings.Fields(string(rights[1]))...)...)
	if out := alike(t, s, "x", "y"); out[0] != reading(5) || out[1] != reading(6) || server.Calls("mget") != 1 ||
		log.Len() > 0 {
		t.Errorf("read %+v by %d MGETs; the log says: %s", out, server.Calls("mget"), log)
	}
}

func TestRedisUncached_KeyThatMayNotBeReadSpoilsNoOtherOfTheSameMGET(t *testing.T) {
	server := redistest.Start(t)
	s, log := denied(t, server, "resetkeys", "~stock:x", "~stock:z")
	for range 3 {
		out := alike(t, s, "x", "y", "z")
		if out[0] != reading(5) || out[1].Fault == nil || !strings.Contains(out[1].Fault.Error(), "NOPERM") || out[2].Exists {
			t.Fatalf("read %+v", out)
		}
	}
	if s.apart.Load() || log.Len() > 0 {
		t.Errorf("mget is given up: %s", log)
	}
	if out := alike(t, s, "x", "z"); out[0] != reading(5) || server.Calls("mget") != 1 {
		t.Errorf("read %+v by %d MGETs", out, server.Calls("mget"))
	}
}

func TestRedisUncached_AgainSaysNothingOfAnySKUWhereRedisIsAway(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "secret")
	s := dial(t, server, layouts()["counter"])
	out := make([]layout.Reading, 2)
	if err := s.ReadUncached(t.Context(), []string{"x", "y"}, out); err == nil {
		t.Errorf("without a password: %+v", out)
	}
	server = redistest.Start(t)
	s = dial(t, server, layouts()["counter"])
	testkit.Check(t, s.ReadUncached(t.Context(), []string{"x", "y"}, out))
	server.Kill()
	if err := s.ReadUncached(t.Context(), []string{"x", "y"}, out); err == nil {
		t.Errorf("without a server: %+v", out)
	}
	if s.metrics.up.Load() {
		t.Error("Redis counts as there")
	}
}

// What stands before Redis may answer for fewer keys than were named: it is unknown whose the answers are.
func TestRedisUncached_MGETThatIsNotAnsweredInFullIsBelievedOfNoSKU(t *testing.T) {
	server := redistest.Start(t)
	setUp(t, server, "SET a 5", "SET b 6", "SET c 7")
	full, cut := []byte("*3\r\n$1\r\n7\r\n$1\r\n5\r\n$1\r\n6\r\n"), []byte("*2\r\n$1\r\n5\r\n$1\r\n6\r\n")
	between := redistest.Between(t, server.Addr, func(client, server *net.TCPConn) (there, back func()) {
		return nil, func() {
			piece := make([]byte, 64<<10)
			for {
				n, err := server.Read(piece)
				if err != nil {
					return
				}
				_, _ = client.Write(bytes.ReplaceAll(piece[:n], full, cut))
			}
		}
	})
	s := dial(t, &redistest.Server{Addr: between}, layout.Options{Type: layout.Counter, Key: "$sku"})
	if out := alike(t, s, "c", "a", "b"); out[0] != reading(7) || out[1] != reading(5) || out[2] != reading(6) ||
		server.Calls("mget") != 1 {
		t.Errorf("read %+v by %d MGETs", out, server.Calls("mget"))
	}
}
