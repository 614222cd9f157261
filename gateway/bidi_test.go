package gateway

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// A SKU that a client chose must not look like another one to an operator.
func TestLog_EscapesBidiControls(t *testing.T) {
	for _, inText := range []bool{false, true} {
		var out strings.Builder
		const sku = "1001\u202e\u2066\u200f\u061c"
		slog.New(newLogHandler(&out, inText)).Info("set "+sku, "sku", sku, "err", errors.New("set "+sku))
		text := out.String()
		if strings.ContainsAny(text, "\u202e\u2066\u200f\u061c") || strings.Count(text, "u061c") != 3 {
			t.Errorf("text %v: %s", inText, text)
		}
	}
}
