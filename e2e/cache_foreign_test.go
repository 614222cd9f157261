package e2e

import (
	"context"
	"net"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// The page cache passes the required HTTP cache tests of others, but for those that e2e/clients/cache.mjs names.
func TestCache_ForeignClientsCacheTestsPass(t *testing.T) {
	testkit.Nightly(t, "it needs npm")
	modules := installed(t, "http-cache-tests@0.4.5")
	if modules == "" {
		t.Skip("npm's http-cache-tests is not installed")
	}
	address := testkit.FreeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	ctx, cancel := context.WithCancel(context.Background())
	server := script(ctx, "node clients/cache.mjs serve "+port, modules)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = server.Wait() // it was killed
	})
	g := gate(t, "upstream.targets = "+quoted("http://"+address), boundless, `stock.source = "off"`,
		`cache.stale_if_error = "0s"`,
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\ncache = \"1h\"")
	soon(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	var rows strings.Builder
	foreign{name: "page cache", command: "node clients/cache.mjs {}"}.judge(t, &rows, modules, g.front)
	if *update {
		write(t, "cache", "| | version | required checks passed | failed |\n| --- | --- | --- | --- |\n"+rows.String())
	}
}
