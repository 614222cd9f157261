package gateway

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"sluice/config"
	"sluice/internal/octets"
)

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// logHandler writes from a level on that a reload changes.
type logHandler struct {
	slog.Handler
	level *slog.LevelVar
}

func (l *logHandler) use(c config.Log) { l.level.Set(levels[c.Level]) }

// NewLog writes to out: text on a terminal, JSON otherwise. A Gateway that is given it has it follow [log] of each
// configuration.
func NewLog(c config.Log, out *os.File) *slog.Logger {
	info, err := out.Stat()
	h := newLogHandler(out, err == nil && info.Mode()&os.ModeCharDevice != 0)
	h.use(c)
	return slog.New(h)
}

func newLogHandler(out io.Writer, inText bool) *logHandler {
	h := &logHandler{level: &slog.LevelVar{}}
	if inText {
		h.Handler = slog.NewTextHandler(out, &slog.HandlerOptions{Level: h.level}) // it quotes bidi controls itself
	} else {
		h.Handler = slog.NewJSONHandler(out, &slog.HandlerOptions{Level: h.level, ReplaceAttr: escapeBidi})
	}
	return h
}

// escapeBidi escapes bidi controls, with which a SKU or a user could look like another one.
func escapeBidi(_ []string, a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	}
	if !strings.ContainsFunc(text, octets.IsBidiControl) {
		return a
	}
	var out strings.Builder
	for _, c := range text {
		if octets.IsBidiControl(c) {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.WriteRune(c)
		}
	}
	return slog.String(a.Key, out.String())
}
