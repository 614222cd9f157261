//go:build linux

package proxy

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// pair is a connection from both sides.
func pair(t *testing.T, network, address string) (client, served net.Conn) {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial(network, ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if served, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); served.Close() })
	return client, served
}

// eventually waits for what the kernel may take a moment for.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestWhoHasClosedTheConnectionIsGone(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"plain":          func(c net.Conn) net.Conn { return c },
		"TLS":            func(c net.Conn) net.Conn { return tls.Server(c, &tls.Config{}) },
		"PROXY protocol": func(c net.Conn) net.Conn { return proxied{proxyproto.NewConn(c)} },
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" "+network, func(t *testing.T) {
				address := "127.0.0.1:0"
				if network == "unix" {
					address = t.TempDir() + "/s"
				}
				client, served := pair(t, network, address)
				c := &Conn{Conn: wrap(served)}
				if c.Gone() {
					t.Error("gone before anything happened")
				}
				if _, err := client.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
					t.Fatal(err)
				}
				if c.Gone() {
					t.Error("gone with a next request under way")
				}
				client.Close()
				eventually(t, "the client is gone", c.Gone)
			})
		}
	}
}

func TestAConnectionThatIsNoSocketIsNeverGone(t *testing.T) {
	client, served := net.Pipe()
	client.Close()
	if (&Conn{Conn: served}).Gone() {
		t.Error("gone, and nobody can know")
	}
}

// Whoever leaves while a window makes him wait does not reach the shop.
func TestWhoLeftBeforeHisWindowNeverReachesTheShop(t *testing.T) {
	shop, client := &seen{}, make(chan net.Conn, 1)
	o := options(shop)
	o.Windows = windowsFunc(func(int64, []byte) (time.Duration, bool) {
		(<-client).Close()
		return 50 * time.Millisecond, true
	})
	addr, p := gate(t, o)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(order)); err != nil {
		t.Fatal(err)
	}
	client <- c
	eventually(t, "the refusal is counted", func() bool { return counted(t, p)["sluice_rejected_requests_total client_gone order"] == 1 })
	if sent := shop.all(); len(sent) != 0 {
		t.Errorf("the shop was sent %q", sent)
	}
}

// asking are places whose turn comes when the client has gone.
type asking struct{ placesFunc }

func (asking) Enter(c Client) Reason {
	for !c.Gone() {
		time.Sleep(time.Millisecond)
	}
	return ClientGone
}

func TestPlacesAreToldWhoIsGone(t *testing.T) {
	shop := &seen{}
	o := options(shop)
	o.Places = asking{}
	addr, p := gate(t, o)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(order)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	eventually(t, "the refusal is counted", func() bool { return counted(t, p)["sluice_rejected_requests_total client_gone order"] == 1 })
	if sent := shop.all(); len(sent) != 0 {
		t.Errorf("the shop was sent %q", sent)
	}
}
