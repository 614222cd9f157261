package settler

import (
	"context"
	"fmt"
	"slices"
)

const (
	ledgersAtOnce = 500
	maxDisputes   = 20 // that are told
)

// Disputes says of which SKUs the file and the mark of the ledger name different homes, at most 20 and how many more.
func (s *Settlement) Disputes(ctx context.Context) (all []string, err error) {
	skus, _, err := s.Stream.SKUs(ctx)
	if err != nil {
		return nil, err
	}
	more := 0
	for some := range slices.Chunk(skus, ledgersAtOnce) {
		ledgers, err := s.Stream.Ledgers(ctx, some)
		if err != nil {
			return nil, err
		}
		for i, sku := range some {
			text := s.home.Disputes(sku, ledgers[i])
			if text != "" && len(all) == maxDisputes {
				more++
			} else if text != "" {
				all = append(all, text)
			}
		}
	}
	if more > 0 {
		all = append(all, fmt.Sprintf("and %d more SKUs", more))
	}
	return all, nil
}
