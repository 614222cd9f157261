package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suite is some tests of one package.
type suite struct {
	folder string // "./limiter"
	tests  []string
}

// suites are those of all bugs, each test once.
func suites(bugs []bug) (all []suite) {
	for _, b := range bugs {
		for _, s := range b.suites {
			i := slices.IndexFunc(all, func(have suite) bool { return have.folder == s.folder })
			if i < 0 {
				i, all = len(all), append(all, suite{folder: s.folder})
			}
			for _, name := range s.tests {
				if !slices.Contains(all[i].tests, name) {
					all[i].tests = append(all[i].tests, name)
				}
			}
		}
	}
	return all
}

// run tells which tests of s fail. A test that is not there, or is left out, or does not compile, is an error.
func (s suite) run(ctx context.Context, tree string) (failed []string, text string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout", "100s", "-run", "^("+
		strings.Join(s.tests, "|")+")$", s.folder)
	cmd.Dir = tree
	// A redis-server that is missing is a failure. Without the folder in its binaries a copy uses what others have built.
	cmd.Env = append(os.Environ(), "CI=true", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath")
	out, _ := cmd.CombinedOutput() // the text tells more than the exit code
	text = string(out)
	if err := ctx.Err(); err != nil {
		return nil, text, err
	}
	for _, name := range s.tests {
		switch {
		case strings.Contains(text, "\n--- FAIL: "+name+" "):
			failed = append(failed, name)
		case !strings.Contains(text, "\n--- PASS: "+name+" ") && len(failed) == 0:
			return nil, text, fmt.Errorf("%s in %s was not run to its end:\n%s", name, s.folder, text)
		}
	}
	return failed, text, nil
}

// copyOf copies what git knows of the tree, and what is new and not ignored, as it lies on the disk.
func copyOf(ctx context.Context, root string) (tree string, err error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("list the files of %s: %w", root, err)
	}
	if tree, err = os.MkdirTemp("", "planted-"); err != nil {
		return "", err
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(names, "\x00"), []byte{0}) {
		if err := copyFile(filepath.Join(root, string(name)), filepath.Join(tree, string(name))); err != nil {
			os.RemoveAll(tree)
			return "", err
		}
	}
	return tree, nil
}

// copyFile passes over a file that is gone though git still knows it.
func copyFile(from, to string) error {
	about, err := os.Stat(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil || !about.Mode().IsRegular() {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, about.Mode().Perm())
}
