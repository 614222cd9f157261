package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// packages writes the packages for this kind of processor, of a release 1.2.3-rc.1, into a folder of the test.
func packages(t *testing.T) (dist string) {
	t.Helper()
	testkit.Nightly(t, "it builds a binary and three packages")
	dist = t.TempDir()
	cmd := exec.Command("sh", "../tools/packages")
	cmd.Env = append(os.Environ(), "DIST="+dist, "ARCHS=amd64", "VERSION=1.2.3-rc.1+g0123", "GOFLAGS=",
		"DOCS_URL=https://git.example.com/docs")
	text, err := cmd.CombinedOutput()
	if err != nil && (strings.Contains(string(text), "proxy") || strings.Contains(string(text), "dial tcp")) {
		t.Skipf("nfpm cannot be had: %s", text)
	}
	if err != nil {
		t.Fatalf("tools/packages: %v\n%s", err, text)
	}
	return dist
}

// output runs a tool that must succeed.
func output(t *testing.T, command string, args ...string) string {
	t.Helper()
	text, err := exec.Command(command, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(command), strings.Join(args, " "), err, text)
	}
	return string(text)
}

func wants(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// The packages hold the same files under an SPDX licence. That for Debian is installed below a folder, its binary
// checks the installed configuration, and removing it leaves nothing but the configuration.
func TestPackages_InstallRunAndGo(t *testing.T) {
	dist, root, dpkg := packages(t), t.TempDir(), tool(t, "dpkg")
	deb := filepath.Join(dist, "sluice_1.2.3~rc.1+g0123_amd64.deb")
	wants(t, output(t, "dpkg-deb", "--field", deb), "Version: 1.2.3~rc.1+g0123\n", "License: Apache-2.0\n",
		"Architecture: amd64\n")
	for _, dir := range []string{"updates", "info", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	options := []string{"--root=" + root, "--force-not-root", "--force-script-chrootless", "--log=" +
		filepath.Join(root, "log")}
	output(t, dpkg, append(options, "--install", deb)...)
	binary := filepath.Join(root, "usr/bin/sluice")
	if got := output(t, binary, "version"); got != "sluice 1.2.3-rc.1+g0123\n" {
		t.Errorf("the installed binary is %q", got)
	}
	output(t, binary, "check", filepath.Join(root, "etc/sluice/config.toml"))
	if got := output(t, binary+"-settle", "version"); got != "sluice-settle 1.2.3-rc.1+g0123\n" {
		t.Errorf("the installed binary of settlement is %q", got)
	}
	wants(t, read(t, filepath.Join(root, "usr/share/doc/sluice/sluice.rules.yaml")),
		"runbook_url: https://git.example.com/docs/runbook.md#sluicedown\n")
	for _, path := range []string{"usr/lib/systemd/system/sluice.service", "usr/lib/systemd/system/sluice.socket",
		"usr/lib/systemd/system/sluice-settle.service", "usr/share/man/man1/sluice-settle-run.1.gz",
		"usr/share/bash-completion/completions/sluice", "usr/share/zsh/vendor-completions/_sluice-settle",
		"usr/share/fish/vendor_completions.d/sluice.fish", "usr/share/doc/sluice/copyright"} {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
	output(t, dpkg, append(options, "--remove", "sluice")...)
	if _, err := os.Stat(binary); err == nil {
		t.Error("the binary is there after it was removed")
	}
	if _, err := os.Stat(filepath.Join(root, "etc/sluice/config.toml")); err != nil {
		t.Errorf("removing took the configuration: %v", err)
	}
	packagesOfOthers(t, dist)
}

// packagesOfOthers looks into what dpkg cannot install.
func packagesOfOthers(t *testing.T, dist string) {
	if rpm, err := exec.LookPath("rpm"); err == nil {
		path := filepath.Join(dist, "sluice-1.2.3~rc.1+g0123-1.x86_64.rpm")
		wants(t, output(t, rpm, "-qp", "--qf", "%{LICENSE} %{VERSION} %{BUILDHOST}\n", path),
			"Apache-2.0 1.2.3~rc.1+g0123 reproducible\n")
		wants(t, output(t, rpm, "-qpl", path), "/usr/bin/sluice\n", "/usr/bin/sluice-settle\n",
			"/usr/lib/systemd/system/sluice.socket\n",
			"/etc/sluice/config.toml\n")
	}
	apks, err := filepath.Glob(filepath.Join(dist, "*.apk"))
	if err != nil || len(apks) != 1 {
		t.Fatalf("%q, %v", apks, err)
	}
	// An apk is some archives one after the other.
	dir := t.TempDir()
	output(t, "tar", "--ignore-zeros", "--warning=no-unknown-keyword", "-xzf", apks[0], "-C", dir)
	wants(t, read(t, filepath.Join(dir, ".PKGINFO")), "pkgver = 1.2.3_rc1-r0\n", "license = Apache-2.0\n")
	info, err := os.Stat(filepath.Join(dir, "etc/init.d/sluice"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the service of OpenRC: %v, %v", info, err)
	}
	if got := output(t, filepath.Join(dir, "usr/bin/sluice"), "version"); got != fmt.Sprintln("sluice 1.2.3-rc.1+g0123") {
		t.Errorf("the binary in the package for Alpine is %q", got)
	}
}

func TestRules_LinksAreAbsoluteOrLeftOut(t *testing.T) {
	if text := output(t, "sh", "-c", "sh ../tools/rules 2>/dev/null"); strings.Contains(text, "runbook_url") ||
		strings.Contains(text, "docs.example.com") {
		t.Errorf("links that lead nowhere:\n%s", text)
	}
	text := output(t, "sh", "../tools/rules", "https://git.example.com/docs/")
	if n, all := strings.Count(text, "runbook_url: https://git.example.com/docs/runbook.md#"), len(alerts(t)); n != all {
		t.Errorf("%d links for %d alerts", n, all)
	}
	for _, wrong := range []string{"docs", "/docs", "https://x/|e date"} {
		if text, err := exec.Command("sh", "../tools/rules", wrong).CombinedOutput(); err == nil {
			t.Errorf("%q is accepted: %.100s", wrong, text)
		}
	}
}
