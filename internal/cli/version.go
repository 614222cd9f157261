package cli

import (
	"runtime/debug"
	"strings"

	"sluice"
)

// revisionLength is how many characters of a commit are shown, as in git describe.
const revisionLength = 9

// linked is set by the linker: -X sluice/internal/cli.linked=1.2.3.
var linked string

// Version is the version that the linker was told, else the version of the module, else the release that the sources
// belong to, with the commit and "dirty" as build metadata where Go has stamped them (semver.org, 10).
func Version() string {
	if linked != "" {
		return linked
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return version(strings.TrimSpace(sluice.Release), info)
}

func version(release string, info *debug.BuildInfo) string {
	var revision, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), revisionLength)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ".dirty"
		}
	}
	// Go derives a version out of the commit too, with a release of v0.0.0: ours says more.
	if v := info.Main.Version; revision == "" && v != "" && v != "(devel)" {
		return strings.TrimPrefix(v, "v")
	}
	if revision == "" {
		return release
	}
	return release + "+g" + revision + dirty
}
