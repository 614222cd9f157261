//go:build linux && !noeventloop

package eventloop

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// A read parks until bytes come, again and again, and ends with the peer.
func TestAdopt_ReadParksUntilBytesCome(t *testing.T) {
	c, peer := adopt(t, openGroup(t, Options{}))
	type result struct {
		text string
		err  error
	}
	results := make(chan result)
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() {
		buf := make([]byte, 16)
		for err := error(nil); err == nil; {
			var n int
			n, err = c.Read(buf)
			results <- result{string(buf[:n]), err}
		}
	})
	for _, text := range []string{"one", "two", "three"} {
		awaitParked(t, c, &c.in)
		io.WriteString(peer, text)
		if r := receive(t, results); r.text != text || r.err != nil {
			t.Errorf("read %q, %v; want %q", r.text, r.err, text)
		}
	}
	awaitParked(t, c, &c.in)
	peer.Close()
	if r := receive(t, results); r.err != io.EOF {
		t.Errorf("after the end: %q, %v", r.text, r.err)
	}
}

// The connection is usable after a deadline; later bytes are read.
func TestAdopt_ReadsAgainAfterADeadline(t *testing.T) {
	c, peer := adopt(t, openGroup(t, Options{}))
	for i := range 3 {
		c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(testTimeout))
		text := fmt.Sprint("text ", i)
		io.WriteString(peer, text)
		expect(t, c, text)
	}
}

func TestAdopt_CloseWakesParkedRead(t *testing.T) {
	c, peer := adopt(t, openGroup(t, Options{}))
	done := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		done <- err
	}()
	awaitParked(t, c, &c.in)
	c.Close()
	if err := receive(t, done); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if n, err := peer.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer reads %d bytes, %v", n, err)
	}
}

// Many connections are read and written at the same time, by a goroutine for each direction.
func TestAdopt_ManyConnections(t *testing.T) {
	g := openGroup(t, Options{})
	var all sync.WaitGroup
	defer all.Wait()
	text := bytes.Repeat([]byte("0123456789"), 20_000)
	for range 100 {
		c, peer := adopt(t, g)
		c.SetDeadline(time.Now().Add(testTimeout))
		all.Go(func() { io.Copy(peer, peer); peer.CloseWrite() })
		all.Go(func() {
			if _, err := c.Write(text); err != nil {
				t.Error(err)
			}
			c.CloseWrite()
		})
		all.Go(func() {
			if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// An adopted connection carries TLS.
func TestAdopt_CarriesTLS(t *testing.T) {
	certificate := selfSigned(t)
	c, peer := adopt(t, openGroup(t, Options{}))
	server := tls.Server(peer, &tls.Config{Certificates: []tls.Certificate{certificate}})
	var echo sync.WaitGroup
	defer echo.Wait()
	echo.Go(func() { io.Copy(server, server); server.Close() })
	roots := x509.NewCertPool()
	roots.AddCert(certificate.Leaf)
	client := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "upstream"})
	defer client.Close()
	client.SetDeadline(time.Now().Add(testTimeout))
	for i := range 10 {
		exchange(t, client, fmt.Sprintf("request %d %0*d", i, 4000*i+1, 0))
	}
	client.CloseWrite()
	if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"upstream"}, NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// The original connection is closed, and the other end stays connected.
func TestAdopt_ClosesTheOriginal(t *testing.T) {
	g := openGroup(t, Options{})
	near, far := pair(t)
	c, err := g.Adopt(near)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := near.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the original: %v", err)
	}
	if c.LocalAddr().String() != far.RemoteAddr().String() || c.RemoteAddr().String() != far.LocalAddr().String() {
		t.Errorf("it is at %s, to %s", c.LocalAddr(), c.RemoteAddr())
	}
	io.WriteString(c, "y")
	expect(t, far, "y")
	if _, err := g.Adopt(near); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed connection is adopted: %v", err)
	}
}
