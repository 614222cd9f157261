package settler

import (
	"context"
	"fmt"
	"strings"

	"sluice/config"
	"sluice/settle"
	"sluice/stockgate/ledger"
)

// WayOut is the command that ends a conflict of this home. Its detail says what comes before.
func (s *Settlement) WayOut(ctx context.Context, c settle.Conflict) string {
	if c.Kind == "lost" && s.frozen(ctx, c.SKU) {
		return "sluice stock recover " + argument(c.SKU)
	}
	switch c.Kind {
	case "entry":
		return fmt.Sprintf("sluice-settle retry %d%s", c.ID, s.option())
	case "missing", "extra":
		return "sluice stock recover --from settle --apply " + argument(c.SKU)
	case "difference":
		return "sluice-settle rebuild " + argument(c.SKU)
	}
	return fmt.Sprintf("sluice-settle solve %d%s", c.ID, s.option())
}

// frozen reports whether the ledger of a SKU is known to be frozen.
func (s *Settlement) frozen(ctx context.Context, sku string) bool {
	if s.Stream.Redis == nil {
		return false
	}
	all, err := s.Stream.Ledgers(ctx, []string{sku})
	return err == nil && all[0].State == string(ledger.Frozen)
}

// option names the home, where a conflict's number needs it.
func (s *Settlement) option() string {
	if s.home.Name == config.MainHome && len(s.home.All) < 2 {
		return ""
	}
	return " --home " + s.home.Name
}

// plainBytes need no quotes in a shell.
const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+.,:/@%"

// argument is text as the last argument of a command, in printable ASCII, as sh takes it. What sh cannot pass, a NUL
// and line feeds at the end, is lost; no request can name a SKU with these.
func argument(text string) string {
	option := ""
	if strings.HasPrefix(text, "-") {
		option = "-- " // it is no flag
	}
	if text != "" && strings.Trim(text, plainBytes) == "" {
		return option + text
	}
	var quoted strings.Builder
	printable := true
	for _, b := range []byte(text) {
		printable = printable && b >= ' ' && b <= '~'
		fmt.Fprintf(&quoted, "\\%03o", b)
	}
	if printable {
		return option + "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return option + `"$(printf '` + quoted.String() + `')"`
}
