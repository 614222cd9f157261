package config

import (
	"fmt"
	"math"
	"strings"
)

// Nearest is the known name that needs the fewest edits, if that is a likely slip of the pen:
// at most a third of the letters, or one name begins with the other. "" = none.
func Nearest(name string, known []string) string {
	name = underscored(name)
	best, least := "", math.MaxInt
	for _, k := range known {
		like := underscored(k)
		d := editDistance(name, like)
		begins := len(name) > 2 && (strings.HasPrefix(like, name) || strings.HasPrefix(name, like))
		if d < least && (d <= max(1, len(name)/3) || begins) {
			best, least = k, d
		}
	}
	return best
}

// Meant ends a message about a name that is not known: it says which of the known ones is meant, or all.
func Meant(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return "there is none"
	}
	return "there are " + strings.Join(known, ", ")
}

func underscored(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// editDistance counts the letters to add, drop, change or swap with their neighbour (optimal string alignment), in
// bytes.
func editDistance(a, b string) int {
	var before []int // the row above the row above
	above := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := above[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
