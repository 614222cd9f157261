package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// bug is one possible mistake: a unified diff, with lines before it that say what it is.
type bug struct {
	file   string // the patch's, without its folder and ending
	name   string
	breaks string // what goes wrong
	suites []suite
	path   string
}

// readBugs reads the patches of a folder whose names have a part, by name.
func readBugs(folder, part string) (bugs []bug, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*"+part+"*.patch"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(fmt.Errorf("read bugs: no patch in %s has %q in its name", folder, part), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		b, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if b.path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		b.file = strings.TrimSuffix(filepath.Base(path), ".patch")
		bugs = append(bugs, b)
	}
	return bugs, nil
}

// parse reads the lines before the diff: Bug, Breaks, and Test once for each package, with its folder and the names of
// tests with bars between.
func parse(text string) (b bug, err error) {
	head, _, ok := strings.Cut(text, "\ndiff --git ")
	if !ok {
		return bug{}, errors.New("there is no diff")
	}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Bug":
			b.name = value
		case "Breaks":
			b.breaks = value
		case "Test":
			folder, tests, ok := strings.Cut(value, " ")
			if !ok || tests == "" {
				return bug{}, fmt.Errorf("%q: it must be a folder and names of tests", value)
			}
			b.suites = append(b.suites, suite{folder, strings.Split(tests, "|")})
		case "":
		default:
			return bug{}, fmt.Errorf("%q is neither Bug, Breaks nor Test", key)
		}
	}
	if b.name == "" || b.breaks == "" || len(b.suites) == 0 {
		return bug{}, errors.New("it needs Bug, Breaks and Test")
	}
	return b, nil
}

// plant puts the bug into a copy of the tree.
func (b bug) plant(ctx context.Context, tree string) error {
	cmd := exec.CommandContext(ctx, "git", "apply", b.path)
	cmd.Dir = tree
	// The copy is no repository, and must not be taken for a part of one that lies around it.
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(tree))
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("the patch does not apply: %s", strings.TrimSpace(string(text)))
	}
	return nil
}
