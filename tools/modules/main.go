// Command modules lists what a binary of Sluice is made of:
//
//	modules licences DIR      docs/licences.md, from the modules that DIR's binaries need, and their licences
//	modules sbom BINARY       a bill of materials in CycloneDX 1.5 (JSON), from what the Go linker wrote into BINARY
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "licences":
		return licences(args[1], out)
	case len(args) == 2 && args[0] == "sbom":
		return bill(args[1], out)
	}
	return fmt.Errorf("say: licences DIR, or sbom BINARY")
}
