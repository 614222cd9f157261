package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
)

// component is one module in the words of CycloneDX.
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl"`
}

// bill writes what the binary at path was built from. It has no time and no random number: the same binary has the same
// bill.
func bill(path string, out io.Writer) error {
	built, err := buildinfo.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	parts := []component{{"library", "stdlib", built.GoVersion[len("go"):], "pkg:golang/stdlib@" +
		built.GoVersion[len("go"):]}}
	for _, m := range built.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version})
	}
	write := json.NewEncoder(out)
	write.SetIndent("", "  ")
	return write.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": map[string]any{"type": "application", "name": "sluice"}},
		"components": parts,
	})
}
