package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/internal/testkit"
)

// keyPair is a certificate and its key, in PEM.
func keyPair(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Check(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, private.Public(), private)
	testkit.Check(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(private)
	testkit.Check(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

func TestCertificate_FaultsNameTheWayOut(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text []byte) { testkit.Check(t, os.WriteFile(filepath.Join(dir, name), text, 0o600)) }
	for _, name := range []string{"a", "b"} {
		cert, key := keyPair(t)
		write(name+".crt", cert)
		write(name+".key", key)
		write("marked.crt", append([]byte("\ufeff"), cert...))
	}
	write("encrypted.key", pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))
	for _, c := range []struct{ cert, key, want string }{
		{"marked.crt", "b.key", "without a byte order mark"},
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

// A tool that sets the time of a file, such as cp -p or rsync -t, leaves no other sign than the content.
func TestCertificate_ContentCountsWhateverItsTime(t *testing.T) {
	dir, at := t.TempDir(), time.Unix(1_700_000_000, 0)
	k := &certificate{certFile: filepath.Join(dir, "a.crt"), keyFile: filepath.Join(dir, "a.key"),
		log: slog.New(slog.DiscardHandler)}
	served := func() *tls.Certificate {
		k.looked = time.Time{}
		pair, err := k.current(nil)
		testkit.Check(t, err)
		return pair
	}
	write := func(file string, text []byte) {
		testkit.Check(t, os.WriteFile(file, text, 0o600))
		testkit.Check(t, os.Chtimes(file, at, at))
	}
	first, firstKey := keyPair(t)
	write(k.certFile, first)
	write(k.keyFile, firstKey)
	before := served()
	testkit.Want(t, "the same files are not read anew", served(), before)
	second, secondKey := keyPair(t)
	write(k.certFile, second)
	testkit.Want(t, "half of a pair", served(), before)
	write(k.keyFile, secondKey)
	block, _ := pem.Decode(second)
	testkit.Want(t, "the new one", string(served().Certificate[0]), string(block.Bytes))
}
