package settler

import (
	"context"
	"fmt"
)

const maxDisputes = 20 // that are told

// Disputes says of which SKUs the file and the mark of the ledger name different homes, at most 20 and how many more.
// The error is of ledgers that cannot be read now.
func (s *Settlement) Disputes(ctx context.Context) (all []string, err error) {
	more := 0
	for l, fault := range s.Stream.All(ctx) {
		if fault != nil {
			err = fault
			continue
		}
		text := s.home.Disputes(l.SKU, l.Ledger)
		if text != "" && len(all) == maxDisputes {
			more++
		} else if text != "" {
			all = append(all, text)
		}
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("and %d more SKUs", more))
	}
	return all, err
}
