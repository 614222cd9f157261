package demo

import (
	"net"
	"strings"
	"testing"
	"time"

	"sluice/internal/adminclient"
)

func TestSale_DemoNamesAnAddressThatCanBeOpened(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:0": "127.0.0.1:", ":0": "127.0.0.1:",
		"0.0.0.0:0": "127.0.0.1:"} {
		ln, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		at := adminclient.LocalAddress(ln.Addr().String())
		if !strings.HasPrefix(at, want) {
			t.Errorf("%s is said to be at %s", listen, at)
		}
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Errorf("%s: %v", listen, err)
			continue
		}
		c.Close()
	}
}

// The demo cannot take a port over, and must not say so.
func TestSale_DemoOnAnOccupiedPortNamesItsOwnFlag(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	err = (&Options{Shoppers: 1, Units: 1, GiveUpAfter: time.Minute, Listen: ln.Addr().String()}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "--listen") || strings.Contains(err.Error(), "take-over") {
		t.Errorf("error: %v", err)
	}
}

func TestOptions_PatienceIsBounded(t *testing.T) {
	for patience, ok := range map[time.Duration]bool{0: false, time.Second: true, maxPatience: true,
		maxPatience + 1: false} {
		err := (&Options{Shoppers: 1, GiveUpAfter: patience}).Check()
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "--patience") {
			t.Errorf("--patience %s: %v", patience, err)
		}
	}
}
