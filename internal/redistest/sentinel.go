package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience bounds how long several servers together may take to agree on something.
const patience = 60 * time.Second

// Watched is one master and its replicas, with sentinels that let a replica follow it.
type Watched struct {
	Name      string    // of the master, as the sentinels know it
	Servers   []*Server // the first was the master when it began
	Sentinels []*Server

	t testing.TB
}

// Sentinel runs one master, two replicas and three sentinels, of which two must agree that the master is gone,
// until the test ends. All of them know each other when it returns. extra are further arguments of the three that
// hold data. The sentinels notice a silent master after a minute, or as soon as Successor is called. Without the binary
// it does what Start does.
func Sentinel(t testing.TB, extra ...string) *Watched {
	t.Helper()
	w := &Watched{Name: "shop", t: t}
	master := Start(t, append([]string{"--repl-diskless-sync-delay", "0"}, extra...)...)
	w.Servers = append(w.Servers, master)
	host, port, _ := net.SplitHostPort(master.Addr)
	for range 2 {
		w.Servers = append(w.Servers,
			Start(t, append([]string{"--repl-diskless-sync-delay", "0", "--replicaof", host + " " + port}, extra...)...))
	}
	for range 3 {
		w.Sentinels = append(w.Sentinels, w.sentinel(host, port))
	}
	w.acquaint()
	return w
}

// Addrs are those of the sentinels.
func (w *Watched) Addrs() (all []string) {
	for _, s := range w.Sentinels {
		all = append(all, s.Addr)
	}
	return all
}

// Master is who most of the sentinels say is it, or nil while they do not agree.
func (w *Watched) Master() *Server {
	votes := make(map[string]int)
	for _, s := range w.Sentinels {
		addr, err := s.Client.Do(context.Background(), "sentinel", "get-master-addr-by-name", w.Name).StringSlice()
		if err == nil && len(addr) == 2 {
			votes[net.JoinHostPort(addr[0], addr[1])]++
		}
	}
	for _, s := range w.Servers {
		if votes[s.Addr] > len(w.Sentinels)/2 {
			return s
		}
	}
	return nil
}

// Successor waits until the sentinels have put another server into the place of old, which takes writes, and
// returns that. They notice a master that is silent for a second from then on.
func (w *Watched) Successor(old *Server) (next *Server) {
	w.t.Helper()
	for _, s := range w.Sentinels {
		if s.process != nil {
			s.Client.Do(context.Background(), "sentinel", "set", w.Name, "down-after-milliseconds", 1000)
		}
	}
	return w.Elected(old)
}

// Elected waits as Successor does, for a fail-over that the test has asked the sentinels for. It leaves their times as
// they are, so that a busy machine has no further one.
func (w *Watched) Elected(old *Server) (next *Server) {
	w.t.Helper()
	await(w.t, "another master", func() bool {
		next = w.Master()
		return next != nil && next != old && next.role() == "master"
	})
	return next
}

// role is what the server says that it is; "" when it does not answer.
func (s *Server) role() string {
	all, _ := s.Client.Do(context.Background(), "role").Slice()
	if len(all) == 0 {
		return ""
	}
	role, _ := all[0].(string)
	return role
}

// sentinel starts one sentinel over the master at host and port.
func (w *Watched) sentinel(host, port string) *Server {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "sentinel.conf") // it writes there what it has learnt
	// With a minute a busy machine has no fail-over that no test asks for.
	text := fmt.Sprintf(
		"sentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %s 60000\nsentinel failover-timeout %s 5000\n",
		w.Name, host, port, w.Name, w.Name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return start(w.t, &Server{file: file})
}

// acquaint waits until each sentinel knows the others and the replicas, and these are in step with the master.
func (w *Watched) acquaint() {
	w.t.Helper()
	for _, s := range w.Sentinels {
		await(w.t, "sentinels that know each other", func() bool {
			is, err := s.Client.Do(context.Background(), "sentinel", "master", w.Name).Result()
			return err == nil && field(is, "num-other-sentinels") == "2" && field(is, "num-slaves") == "2"
		})
	}
	await(w.t, "replicas in step", func() bool { return w.Servers[0].followers() == 2 })
}

// followers is how many replicas get what the server writes from now on. A replica says that its link is up before
// the master sends it anything.
func (s *Server) followers() int {
	text, _ := s.Client.Info(context.Background(), "replication").Result()
	return strings.Count(text, ",state=online,")
}

// field finds a name in a reply of names and values, which RESP2 and RESP3 write differently.
func field(reply any, name string) string {
	switch all := reply.(type) {
	case map[any]any:
		return fmt.Sprint(all[name])
	case []any:
		for i := 0; i+1 < len(all); i += 2 {
			if all[i] == name {
				return fmt.Sprint(all[i+1])
			}
		}
	}
	return ""
}

// await waits until what is true: real servers go by their own clock.
func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("redistest: never: %s", what)
}

// client is for the test's own commands to a server. Its times suit a busy machine.
func client(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, PoolSize: 4, ReadTimeout: 10 * time.Second,
		PoolTimeout: time.Minute})
}
