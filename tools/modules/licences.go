package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is one that is linked into a binary.
type module struct{ Path, Version, Dir string }

// linked lists the modules that the binaries need, on any of the systems it is released for, ours not among them.
func linked(dir string) ([]module, error) {
	var all []module
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", "list", "-buildvcs=false", "-deps", "-json=Module", "./cmd/sluice", "./cmd/sluice-settle")
		cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list what the binaries need: %w", err)
		}
		for dec := json.NewDecoder(bytes.NewReader(text)); ; {
			var p struct{ Module *module }
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module != nil && p.Module.Version != "" && !slices.Contains(all, *p.Module) {
				all = append(all, *p.Module)
			}
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func licences(dir string, out io.Writer) error {
	all, err := linked(dir)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "# Licences\n\nSluice is under the licence in [LICENSE](../LICENSE). Its binaries hold the modules "+
		"below and the Go standard library\n"+
		"(BSD-3-Clause). Written by `make licences`; a test holds the list against `go.mod`.\n\n| module | version | "+
		"licence |\n| --- | --- | --- |\n")
	for _, m := range all {
		name, err := licenceOf(m)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", m.Path, m.Version, name)
	}
	return vendored(dir, out)
}

// vendored lists what the dashboard holds of others, each in a folder of admin/web/vendor, with its licence beside it.
func vendored(dir string, out io.Writer) error {
	folders, err := filepath.Glob(filepath.Join(dir, "admin", "web", "vendor", "*"))
	if err != nil {
		return err
	}
	fmt.Fprint(out, "\nThe dashboard in it holds these scripts, whose licences lie beside them in "+
		"`admin/web/vendor/`.\n\n| script | version | licence |\n| --- | --- | --- |\n")
	for _, folder := range folders {
		name, err := licenceOf(module{Path: filepath.Base(folder), Dir: folder})
		if err != nil {
			return err
		}
		scripts, err := filepath.Glob(filepath.Join(folder, "*.js.gz"))
		if err != nil || len(scripts) != 1 {
			return fmt.Errorf("find the script of %s: %d of them, %v", folder, len(scripts), err)
		}
		text, err := unzipped(scripts[0])
		if err != nil {
			return err
		}
		version := regexp.MustCompile(`\(v([0-9.]+)\)`).FindSubmatch(text[:min(len(text), 200)])
		if version == nil {
			return fmt.Errorf("read the version of %s: its first line does not tell", scripts[0])
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", filepath.Base(folder), version[1], name)
	}
	return nil
}

// unzipped reads a file that is compressed by gzip.
func unzipped(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// licenceOf finds the SPDX name of the licence whose text lies in the module's root.
func licenceOf(m module) (string, error) {
	files, err := filepath.Glob(filepath.Join(m.Dir, "*"))
	if err != nil {
		return "", err
	}
	for _, path := range files {
		name := strings.ToUpper(filepath.Base(path))
		if !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if id := identify(string(text)); id != "" {
			return id, nil
		}
	}
	return "", fmt.Errorf("read the licence of %s in %s: none that is known", m.Path, m.Dir)
}

// identify tells the licences that our dependencies have by sentences that only they have.
func identify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	switch {
	case strings.Contains(text, "Mozilla Public License Version 2.0"):
		return "MPL-2.0"
	case strings.Contains(text, "Apache License Version 2.0"):
		return "Apache-2.0"
	case strings.Contains(text, "Permission is hereby granted, free of charge"):
		return "MIT"
	case strings.Contains(text, "Redistribution and use in source and binary forms"):
		if strings.Contains(text, "Neither the name") || strings.Contains(text, "names of its contributors may") {
			return "BSD-3-Clause"
		}
		return "BSD-2-Clause"
	}
	return ""
}
