package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCertificate_FaultsNameTheWayOut(t *testing.T) {
	dir := t.TempDir()
	write := func(name, kind string, der []byte) {
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		of := &x509.Certificate{SerialNumber: big.NewInt(1)}
		cert, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(name+".crt", "CERTIFICATE", cert)
		write(name+".key", "PRIVATE KEY", der)
	}
	write("encrypted.key", "ENCRYPTED PRIVATE KEY", []byte("x"))
	for _, c := range []struct{ cert, key, want string }{
		{"a.crt", "a.key", ""}, {"a.crt", "b.key", "write the key that belongs to"},
		{"a.crt", "encrypted.key", "openssl pkey"}, {"none.crt", "a.key", "put the file there"},
		{"a.key", "a.key", "a chain of certificates in PEM"},
	} {
		k := &certificate{certFile: filepath.Join(dir, c.cert), keyFile: filepath.Join(dir, c.key)}
		if err := k.read(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v, want %q", c.cert, c.key, err, c.want)
		}
	}
}

func TestCertificate_FaultIsLoggedOnce(t *testing.T) {
	var log strings.Builder
	k := &certificate{certFile: "none.crt", keyFile: "none.key", log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		k.looked = time.Time{}
		if _, err := k.current(nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "certificate not reloaded"); n != 1 {
		t.Errorf("one fault is logged %d times:\n%s", n, log.String())
	}
}
