//go:build linux

package proxy

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// eventually waits for what the kernel may take a moment for.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
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
