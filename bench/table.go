package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// table is a Markdown table whose columns are also aligned for a terminal.
type table struct {
	rows [][]string // the first is the head
}

func (t *table) row(columns ...string) { t.rows = append(t.rows, columns) }

func (t *table) String() string {
	wide := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, text := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(text), 3)
		}
	}
	var out strings.Builder
	for n, row := range t.rows {
		for i, text := range row {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(text))
			out.WriteString("| " + text + pad + " ")
		}
		out.WriteString("|\n")
		if n == 0 {
			for _, w := range wide {
				out.WriteString("| " + strings.Repeat("-", w) + " ")
			}
			out.WriteString("|\n")
		}
	}
	return out.String()
}

// number writes three digits that count; "–" for what was not measured.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// spread writes a median with its noise.
func spread(values []float64) string {
	if len(values) < 2 {
		return number(middle(values))
	}
	return number(middle(values)) + " ± " + number(noise(values))
}
