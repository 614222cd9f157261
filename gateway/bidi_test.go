package gateway

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/config"
)

// A SKU that a client chose must not look like another one to an operator.
func TestLog_EscapesBidiControls(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		path := filepath.Join(t.TempDir(), "log")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		const sku = "1001\u202e\u2066\u200f\u061c"
		NewLog(config.Log{Level: "info", Format: format}, out).Info("set "+sku, "sku", sku, "err", errors.New("set "+sku))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(string(text), "\u202e\u2066\u200f\u061c") || strings.Count(string(text), "u061c") != 3 {
			t.Errorf("%s: %s", format, text)
		}
	}
}
