package listener

import (
	"net"
	"os"
	"testing"
)

func TestReaches_KnowsOwnAddresses(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	own := "127.0.0.1"
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n := a.(*net.IPNet); n.IP.To4() != nil && !n.IP.IsLoopback() {
			own = n.IP.String()
		}
	}
	for _, c := range []struct {
		target, address string
		want            bool
	}{
		{"http://127.0.0.1:8080", ":8080", true},
		{"http://localhost:8080", "127.0.0.1:8080", true},
		{"http://LOCALHOST:8080", "0.0.0.0:8080", true},
		{"http://[::1]:8080", "[::]:8080", true},
		{"http://0.0.0.0:8080", "127.0.0.1:8080", true},
		{"http://127.1.2.3:8080", ":8080", true},
		{"http://" + name + ":8080", ":8080", true},
		{"http://" + own + ":8080", ":8080", true},
		{"http://127.0.0.1", ":80", true},
		{"https://127.0.0.1", ":443", true},
		{"unix:/run/a.sock", "unix:/run/a.sock", true},
		{"http://127.0.0.1:8081", ":8080", false},
		{"http://127.0.0.2:8080", "127.0.0.1:8080", false},
		{"http://192.0.2.1:8080", ":8080", false},
		{"http://shop.example:8080", ":8080", false},
		{"unix:/run/b.sock", "unix:/run/a.sock", false},
		{"http://127.0.0.1:8080", "unix:/run/a.sock", false},
		{"http://127.0.0.1:8080", "", false},
	} {
		if got := Reaches(c.target, c.address); got != c.want {
			t.Errorf("Reaches(%q, %q) = %v", c.target, c.address, got)
		}
	}
}
