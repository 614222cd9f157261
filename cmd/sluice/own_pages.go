package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice/config"
	"sluice/proxy/reject"
)

// pagesCompile is the rule that own pages and languages can be used.
func pagesCompile(c *config.Config) []error {
	if len(c.Responses.Pages) == 0 {
		return nil
	}
	_, err := reject.New(responses(&c.Responses))
	switch {
	case err == nil:
		return nil
	case strings.HasPrefix(err.Error(), "languages: "):
		return []error{c.Errorf("responses.languages", "%s", strings.TrimPrefix(err.Error(), "languages: "))}
	}
	return []error{c.Errorf("responses.template_dir", "%v", err)}
}

// digestFolder is of the names and the content of what lies in a folder, but not of folders in it.
func digestFolder(folder string) (sum fingerprint, err error) {
	entries, err := os.ReadDir(folder) // in the order of their names
	if err != nil {
		return sum, err
	}
	all := sha256.New()
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		one, err := digest(path)
		if err != nil {
			return sum, err
		}
		fmt.Fprintf(all, "%q %x\n", entry.Name(), one)
	}
	all.Sum(sum[:0])
	return sum, nil
}
