package deploy

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sluice/internal/testkit"
)

// build makes the released binaries out of the tree at root: sluice, whose path it returns, and sluice-settle beside
// it.
func build(t *testing.T, root string) (path string) {
	t.Helper()
	path, _ = link(t, root, "")
	return path
}

// link builds with further flags of the linker, and gives what that says.
func link(t *testing.T, root, further string) (path, said string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "nethttpomithttp2", "-ldflags",
		strings.TrimSpace("-s -w -X sluice/internal/cli.linked=v0 "+further), "-o", dir+"/",
		"./cmd/sluice", "./cmd/sluice-settle")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%.2000s", err, text)
	}
	return filepath.Join(dir, "sluice"), string(text)
}

// copyTree copies what a build reads.
func copyTree(t *testing.T, from string) (to string) {
	t.Helper()
	to = t.TempDir()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rest), 0o755)
		}
		if !d.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rest), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// A build of the same sources gives the same bytes, wherever they lie: a published hash can be checked.
func TestPackaging_BuildIsReproducible(t *testing.T) {
	testkit.Nightly(t, "it builds the binary twice")
	one, two := []byte(read(t, build(t, ".."))), []byte(read(t, build(t, copyTree(t, ".."))))
	if sha256.Sum256(one) != sha256.Sum256(two) {
		t.Errorf("two builds of the same sources differ: %d and %d bytes", len(one), len(two))
	}
	if here, err := filepath.Abs(".."); err != nil || bytes.Contains(one, []byte(here)) {
		t.Errorf("the binary tells where it was built: %s, %v", here, err)
	}
}

// What the release and the packages name must be there: their tools find out on the day of the release.
func TestPackaging_ReleaseNamesFilesThatAreThere(t *testing.T) {
	text := read(t, "../.goreleaser.yaml") + read(t, "packages/nfpm.yaml")
	sources := regexp.MustCompile(`(?:src|postinstall|preremove|preinstall): "?([^,}"\n]+)`).FindAllStringSubmatch(text,
		-1)
	if len(sources) < 20 {
		t.Errorf("only %d files are released", len(sources))
	}
	for _, m := range sources {
		if strings.HasPrefix(m[1], "$") {
			continue // what is built
		}
		if found, err := filepath.Glob(filepath.Join("..", strings.TrimSpace(m[1]))); err != nil || len(found) == 0 {
			t.Errorf("%s is not there: %v", m[1], err)
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "-trimpath", "sh tools/packages", "license: Apache-2.0",
		"algorithm: sha256", "sboms:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the release has no %s", want)
		}
	}
}

func TestPackaging_UnitExposesLittle(t *testing.T) {
	testkit.Nightly(t, "each version of systemd counts in its own way")
	// The threshold is in tenths: 2.0.
	cmd := exec.Command(tool(t, "systemd-analyze"), "security", "--offline=true", "--threshold=20", "--no-pager",
		"systemd/sluice.service", "systemd/sluice-settle.service")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, text)
	}
}

// The folder of server.state_dir, and that of a database of SQLite, is there under OpenRC, too.
func TestOpenRC_MakesTheStateDirectoriesOfTheUnits(t *testing.T) {
	for _, service := range []string{"sluice", "sluice-settle"} {
		folder := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindStringSubmatch(read(t, "systemd/"+service+".service"))
		if folder == nil || !regexp.MustCompile(`(?m)^\tcheckpath .* /var/lib/`+folder[1]+`( |$)`).MatchString(
			read(t, "openrc/"+service)) {
			t.Errorf("%s: OpenRC does not make %q in /var/lib", service, folder)
		}
	}
}

// systemd reads the units without a complaint of its own. It looks for the binary, which is not there: a stand-in is.
func TestPackaging_UnitsPleaseSystemd(t *testing.T) {
	testkit.Nightly(t, "each version of systemd has its own complaints")
	analyze, dir := tool(t, "systemd-analyze"), t.TempDir()
	units := []string{"sluice.service", "sluice.socket", "sluice-settle.service"}
	for _, unit := range units {
		text := regexp.MustCompile(`/usr/bin/[a-z-]+`).ReplaceAllString(read(t, "systemd/"+unit), "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, unit), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(analyze, append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...)
	cmd.Dir = dir
	text, err := cmd.CombinedOutput()
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "sluice") {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
	if err != nil {
		t.Errorf("systemd-analyze verify: %v\n%s", err, text)
	}
}

// Both Dockerfiles make the same image: what differs is where the binary comes from.
func TestPackaging_ImagesAreTheSameWhereverTheBinaryIsBuilt(t *testing.T) {
	last := func(path string) string {
		_, stage, _ := strings.Cut(read(t, path), "\nFROM scratch\n")
		stage = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(stage, "")
		return regexp.MustCompile(`(?m)^COPY .* (\S+)$`).ReplaceAllString(stage, "COPY $1")
	}
	if one, two := last("../Dockerfile"), last("image/Dockerfile"); one != two || one == "" {
		t.Errorf("the images differ:\n%s\n%s", one, two)
	}
}

// inspected is what buildah says of an image.
type inspected struct {
	Docker struct {
		Config struct {
			User, Entrypoint any
			Cmd              []string
			Healthcheck      *struct{ Test []string }
		} `json:"config"`
	}
}

// The image is built with no registry and no daemon, and runs as nobody on a root that cannot be written.
func TestPackaging_ImageRunsUnprivilegedOnAReadOnlyRoot(t *testing.T) {
	testkit.Nightly(t, "it builds the binary and an image")
	buildah := tool(t, "buildah")
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts the image")
	}
	command := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Skipf("%s %s: %v: %s", filepath.Base(name), args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	image := "sluice-test:" + strings.ToLower(filepath.Base(t.TempDir()))
	command("sh", "../tools/image-here", image, build(t, ".."))
	t.Cleanup(func() { _ = exec.Command(buildah, "rmi", image).Run() })
	var made inspected
	if err := json.Unmarshal([]byte(command(buildah, "inspect", "--type", "image", image)), &made); err != nil {
		t.Fatal(err)
	}
	if c := made.Docker.Config; c.User != "65532:65532" || c.Healthcheck == nil ||
		strings.Join(c.Healthcheck.Test, " ") != "CMD /sluice healthcheck" {
		t.Errorf("the image is configured as %+v", c)
	}
	container := command(buildah, "from", "--pull-never", image)
	t.Cleanup(func() { _ = exec.Command(buildah, "rm", container).Run() })
	root := command(buildah, "mount", container)
	t.Logf("the image has %.1f MB", float64(sizeOf(t, root))/1e6)
	if out := command("unshare", "-mpf", "--kill-child", "sh", "-c", inside, "sh", root,
		configuration(t)); !strings.HasSuffix(out, "ok\nhealthy") {
		t.Errorf("in the image: %s", out)
	}
}

// inside runs the image at $1 as a container would, with $2 as its configuration: as nobody, on a root that cannot be
// written.
const inside = `set -eu
mkdir -p "$1/etc/sluice" && printf %s "$2" >"$1/etc/sluice/config.toml"
mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
if touch "$1/written" 2>/dev/null; then echo "the root can be written"; exit 1; fi
chroot --userspec=65532:65532 "$1" /sluice run --config /etc/sluice/config.toml 2>&1 &
for i in $(seq 200); do
	if chroot --userspec=65532:65532 "$1" /sluice healthcheck 2>/dev/null; then echo healthy; exit 0; fi
	sleep 0.05
done
exit 1`

// configuration is of a gate on a free port.
func configuration(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("server.listen = [\"127.0.0.1:0\"]\nadmin.listen = \"\"\nops.listen = %q\nupstream.targets = "+
		"[\"http://127.0.0.1:9\"]\n"+
		"[[route]]\nname = \"all\"\nmatch = \"/\"\ngate = \"pass\"\n", testkit.FreeAddress(t))
}

// The compiler must not be emulated, and a build without any argument must not be of an unknown version.
func TestDockerfile_CompilesForThePlatformThatIsAskedFor(t *testing.T) {
	text := read(t, "../Dockerfile")
	wants(t, text, "FROM --platform=$BUILDPLATFORM golang:", "\nARG TARGETOS\n", "\nARG TARGETARCH\n",
		"GOOS=$TARGETOS GOARCH=$TARGETARCH",
		"-X sluice/internal/cli.linked=$VERSION", "\nFROM scratch\n", "\nUSER 65532:65532\n")
	if strings.Contains(text, "unknown") || strings.Contains(text, ":latest") {
		t.Error("the Dockerfile names a version that is none")
	}
	// deploy/config.toml is copied into the image although the rest of deploy is left out.
	wants(t, read(t, "../.dockerignore"), "\ndeploy/*\n!deploy/config.toml\n")
	if ignored := read(t, "../.dockerignore"); regexp.MustCompile(`(?m)^/?(VERSION|config\.toml)$`).MatchString(ignored) {
		t.Error("a file that is embedded is not in the build context")
	}
}
