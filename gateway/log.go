package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"sluice/config"
	"sluice/internal/octets"
)

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// logHandler writes in the form in force. It is safe for concurrent use.
type logHandler struct {
	slog.Handler // JSON
	text         slog.Handler
	form         *logForm
}

// logForm is how a logHandler, and all that With makes of it, write.
type logForm struct {
	level    slog.LevelVar
	inText   atomic.Bool
	terminal bool // "auto" is text
}

func (f *logForm) use(c config.Log) {
	f.level.Set(levels[c.Level])
	f.inText.Store(c.Format == "text" || c.Format == "auto" && f.terminal)
}

// NewLog writes to out. A Gateway that is given it has it follow [log] of each configuration.
func NewLog(c config.Log, out *os.File) *slog.Logger {
	form := &logForm{}
	if info, err := out.Stat(); err == nil {
		form.terminal = info.Mode()&os.ModeCharDevice != 0
	}
	form.use(c)
	return slog.New(&logHandler{form: form, text: slog.NewTextHandler(out, &slog.HandlerOptions{Level: &form.level}),
		// the form of text quotes such characters itself
		Handler: slog.NewJSONHandler(out, &slog.HandlerOptions{Level: &form.level, ReplaceAttr: escapeBidi})})
}

// Handle implements slog.Handler.
func (l *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if l.form.inText.Load() {
		return l.text.Handle(ctx, r)
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{Handler: l.Handler.WithAttrs(attrs), text: l.text.WithAttrs(attrs), form: l.form}
}

// WithGroup implements slog.Handler.
func (l *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{Handler: l.Handler.WithGroup(name), text: l.text.WithGroup(name), form: l.form}
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
