package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/internal/redistest"
	"sluice/internal/testkit"
)

// certified makes a certificate for 127.0.0.1 that signs itself, and returns the paths of it and of its key.
func certified(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the shop's Redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, &text, &text, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("redis.crt", "CERTIFICATE", signed), write("redis.key", "PRIVATE KEY", secret)
}

// rights is the ACL rule that the manual gives for a user who reserves.
func rights(t *testing.T) []any {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)ACL SETUSER sluice on >PASSWORD (.*?)\n` + "```").FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/redis.md has no ACL rule")
	}
	var rule []any
	for _, word := range strings.Fields(strings.ReplaceAll(string(found[1]), "\\\n", " ")) {
		rule = append(rule, strings.ReplaceAll(strings.Trim(word, "'"), "NAME", "shop"))
	}
	return rule
}

func TestReserve_NeedsNoMoreRightsThanDocumented(t *testing.T) {
	t.Parallel()
	cert, key := certified(t)
	for _, topology := range []string{"single", "cluster"} {
		t.Run(topology, func(t *testing.T) {
			_, port, _ := net.SplitHostPort(testkit.FreeAddress(t))
			args := []string{"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
				"--tls-auth-clients", "no"}
			if topology == "cluster" {
				args = append(args, "--cluster-enabled", "yes", "--cluster-port", portOf(t, testkit.FreeAddress(t)),
					"--tls-cluster",
					"yes", "--cluster-announce-ip", "127.0.0.1")
			}
			r, shop := redistest.Start(t, args...), book(t, nil)
			if topology == "cluster" {
				if err := r.Client.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
					t.Fatal(err)
				}
				soon(t, "the cluster is up",
					func() bool { return strings.Contains(r.Client.ClusterInfo(t.Context()).Val(), "cluster_state:ok") })
			}
			rule := append([]any{"acl", "setuser", "sluice", "on", ">a secret"}, rights(t)...)
			if err := r.Client.Do(t.Context(), rule...).Err(); err != nil {
				t.Fatal(err)
			}
			password := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(password, []byte("a secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			path := file(t, strings.Join([]string{
				"name = \"shop\"\nserver.shutdown_delay = \"0s\"\n" + listeners,
				"stock.source = \"redis\"\nstock.redis.tls = true\nstock.redis.username = \"sluice\"",
				"stock.redis.timeout = \"5s\"", // a handshake on a busy machine
				"stock.redis.addresses = " + quoted("127.0.0.1:"+port), "stock.redis.password_file = " + strconv.Quote(password),
				boundless, shop.setting(), `stock.reserve.reservation_ttl = "1s"`, reserveRoutes,
			}, "\n"))
			trusting := func(args ...string) *exec.Cmd {
				c := exec.Command(binary, args...)
				c.Env = append(os.Environ(), "SSL_CERT_FILE="+cert)
				return c
			}
			for _, args := range [][]string{{"stock", "set", "--config", path, "1001", "5"},
				{"check", "--online", "--sku", "1001", path}, {"stock", "list", "--config", path}} {
				if text, err := trusting(args...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, text)
				}
			}
			g := start(t, path, trusting("run", "--config", path))
			end := sale(8, g.front)
			soon(t, "all is sold and decided", func() bool { return ledgerOf(t, r, "1001") == account{5, 0, 5} })
			end()
			log, err := r.Client.ACLLog(t.Context(), 100).Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, denied := range log {
				if denied.Object != "config|get" { // which check --online may be denied
					t.Errorf("it was denied %s", denied.Object)
				}
			}
			shop.audit(t)
		})
	}
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}
