package config

import (
	"fmt"
	"strings"
)

// unknown says what could have been meant by name among the keys that its table has.
func unknown(kind, name string, known []string) string {
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s; did you mean %q?", kind, near)
	}
	return fmt.Sprintf("unknown %s; here may stand %s", kind, strings.Join(known, ", "))
}

// nearest is the known name that needs the fewest edits, if that is a likely slip of the pen:
// at most a third of the letters, or one name begins with the other. "" = none.
func nearest(name string, known []string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	best, least := "", len(name)+1
	for _, k := range known {
		d := edits(name, k)
		begins := len(name) > 2 && (strings.HasPrefix(k, name) || strings.HasPrefix(name, k))
		if d < least && (d <= max(1, len(name)/3) || begins) {
			best, least = k, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
