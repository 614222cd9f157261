//go:build unix

package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/admin"
	"sluice/config"
)

// A pipe or a device in the place of a file would be waited for, or read, without end; and with it each request that
// changes the gate.
func TestPipe_InThePlaceOfAFileIsABadFile(t *testing.T) {
	for _, name := range []string{"config.toml", "token", "secret", "pages/page.html"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := func(name string) string { return filepath.Join(dir, name) }
			text := strings.Replace(steered, "[admin]", "[stock.reserve]\nsecret_file = \"secret\"\n[responses]\ntemplate_dir "+
				"= \"pages\"\n[admin]\ntoken_file = \"token\"", 1)
			if err := os.Mkdir(file("pages"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"config.toml": text, "token": "operator-of-the-gate",
				"secret": "0123456789abcdef", "pages/page.html": "<p>no"} {
				if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			load := func() (*config.Config, error) { return config.Load(file("config.toml"), os.LookupEnv, Validate) }
			c, err := load()
			if err != nil {
				t.Fatal(err)
			}
			g := gatewayOf(t, c)
			var from configFiles
			from.set(c.Files(), false)
			g.controller.load, g.controller.files = load, &from
			if err := errors.Join(os.Remove(file(name)), syscall.Mkfifo(file(name), 0o600)); err != nil {
				t.Fatal(err)
			}
			rejected := make(chan error, 1)
			go func() {
				_, err := g.controller.Reload(t.Context(), false)
				rejected <- err
			}()
			select {
			case err := <-rejected:
				bad := (*admin.BadFile)(nil)
				if !errors.As(err, &bad) || !strings.Contains(bad.Text(), name) ||
					!strings.Contains(bad.Text(), "not a regular file") {
					t.Errorf("%v; want a bad file, named", err)
				}
			case <-time.After(time.Minute):
				t.Fatal("the reload waits for a pipe")
			}
			if s := g.Status(); s.Reload.OK || s.Config != c.Version() {
				t.Errorf("%+v", s)
			}
		})
	}
}
