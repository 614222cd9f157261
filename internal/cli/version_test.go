package cli

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"

	"sluice"
	"sluice/internal/testkit"
)

func TestVersion_IsTheMostPreciseThatIsKnown(t *testing.T) {
	stamped := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}
	dirty := append(stamped[:2:2], debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	for _, tt := range []struct {
		info debug.BuildInfo
		want string
	}{
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: stamped}, "0.1.0+g012345678"},
		{debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-2026-0123+dirty"}, Settings: dirty}, "0.1.0+g012345678.dirty"},
		{debug.BuildInfo{Main: debug.Module{Version: "v1.4.0"}}, "1.4.0"},
		{debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "0.1.0"},
		{debug.BuildInfo{}, "0.1.0"},
	} {
		if got := version("0.1.0", &tt.info); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt, got, tt.want)
		}
	}
}

// A plain go build, without any flag of ours, names the release of the file VERSION.
func TestVersion_IsWhatTheLinkerWasToldOrTheRelease(t *testing.T) {
	testkit.Nightly(t, "it links the binary twice")
	for flags, want := range map[string]string{
		"":                                    "sluice " + sluice.Release,
		"-X sluice/internal/cli.linked=7.8.9": "sluice 7.8.9\n",
	} {
		path := filepath.Join(t.TempDir(), "sluice")
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", flags, "-o", path, "sluice/cmd/sluice")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if text, err := exec.Command(path, "version").Output(); err != nil || string(text) != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
	}
}

func TestRelease_IsASemanticVersion(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9a-z.]+)?\n$`).MatchString(sluice.Release) {
		t.Errorf("VERSION holds %q", sluice.Release)
	}
}
