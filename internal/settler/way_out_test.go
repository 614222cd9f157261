package settler

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/settle"
)

// The command of a way out names the SKU, whatever is in it, and has nothing else done.
func TestWayOut_IsACommandForTheShell(t *testing.T) {
	s := &Settlement{home: settle.Home{Name: "main", All: []string{"main"}}}
	folder := t.TempDir()
	const show = "#!/bin/sh\nshift\n[ \"$1\" = -- ] && shift\nprintf '%s|%s' \"$#\" \"$1\"\n"
	if err := os.WriteFile(filepath.Join(folder, "sluice-settle"), []byte(show), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, sku := range []string{"1001", "a b", "it's", `say "x"`, "$(date)", "`date`", "a;b|c&d>e<f*g?h", "-x", "--all",
		"~", "#1", `back\slash`, "Größe", "\xff\xfe", "a\tb", "%d", "商品", "!x"} {
		command := s.WayOut(t.Context(), settle.Conflict{Kind: "difference", SKU: sku})
		if strings.ContainsFunc(command, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is not printable ASCII", command)
		}
		sh := exec.Command("sh", "-c", command)
		sh.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		out, err := sh.CombinedOutput()
		if err != nil || string(out) != "1|"+sku {
			t.Errorf("%s: %q, %v: want %q alone", command, out, err, sku)
		}
	}
}

func TestWayOut_EveryKindHasOne(t *testing.T) {
	s := &Settlement{home: settle.Home{Name: "main", All: []string{"main"}}}
	for kind, want := range map[string]string{
		"entry": "sluice-settle retry 7", "stock": "sluice-settle solve 7", "giveback": "sluice-settle solve 7",
		"missing":    "sluice stock recover --from settle --apply 1001",
		"extra":      "sluice stock recover --from settle --apply 1001",
		"difference": "sluice-settle rebuild 1001", "lost": "sluice-settle solve 7",
	} {
		if got := s.WayOut(t.Context(), settle.Conflict{ID: 7, Kind: kind, SKU: "1001"}); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
	s.home.All = []string{"main", "east"}
	if got := s.WayOut(t.Context(), settle.Conflict{ID: 7, Kind: "stock"}); got != "sluice-settle solve 7 --home main" {
		t.Errorf("of two homes: %q", got)
	}
}
