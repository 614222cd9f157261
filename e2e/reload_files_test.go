package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// listed runs a gate that denies the clients of a file. Of later files the paths are given too.
func listed(t *testing.T) (g *running, list, later string) {
	t.Helper()
	list, later = file(t, "192.0.2.0/24\n"), filepath.Join(t.TempDir(), "later.txt")
	g = gate(t, open(t, nil).setting(), `stock.source = "off"`, unlimited, "limits.deny = ["+strconv.Quote("file:"+list)+
		"]",
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"")
	return g, list, later
}

// page asks for the shop's page, once.
func (g *running) page() (status int) {
	resp, err := g.client.Get("http://" + g.front + "/")
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// put writes a file as a program that replaces it does: never half.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// A list that comes after the configuration that names it, as from another volume, is found.
func TestReload_IsTriedAgainUntilTheNamedFilesAreThere(t *testing.T) {
	t.Parallel()
	g, list, later := listed(t)
	put(t, g.file, g.change(list, later))
	soon(t, "the configuration is rejected",
		func() bool { return g.metric("sluice_config_last_reload_successful", "") == 0 })
	put(t, later, "127.0.0.1\n")
	soon(t, "the list is obeyed", func() bool { return g.page() == 403 })
	soon(t, "it is told that the configuration was taken",
		func() bool { return g.metric("sluice_config_last_reload_successful", "") == 1 })
	g.logs(t, "configuration not reloaded")
	if n := strings.Count(g.log.String(), "configuration not reloaded"); n != 1 {
		t.Errorf("the same fault was told %d times", n)
	}
}

// A list that is removed together with the line that names it keeps nothing as it was.
func TestReload_ListMayBeRemovedWithItsLine(t *testing.T) {
	t.Parallel()
	g, list, later := listed(t)
	put(t, later, "127.0.0.1\n")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	put(t, g.file, g.change(list, later))
	soon(t, "the other list is obeyed", func() bool { return g.page() == 403 })
}

// A certificate that was renewed badly shows where operators look, without a handshake; the one before serves on.
func TestReload_CertificateThatCannotBeReadIsShown(t *testing.T) {
	t.Parallel()
	cert, key := certified(t)
	g := gate(t, open(t, nil).setting(), unlimited,
		"server.tls.cert_file = "+strconv.Quote(cert)+"\nserver.tls.key_file = "+strconv.Quote(key))
	good, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	put(t, key, "half a k")
	soon(t, "the metric shows it",
		func() bool { return g.metric("sluice_config_last_reload_successful", "") == 0 })
	wants(t, ok(t, "status", "--admin", g.admin), "DEGRADED", "server.tls: read "+cert)
	g.logs(t, "cert_file is a chain of certificates in PEM")
	put(t, key, string(good))
	soon(t, "the metric shows that the key is good",
		func() bool { return g.metric("sluice_config_last_reload_successful", "") == 1 })
}
