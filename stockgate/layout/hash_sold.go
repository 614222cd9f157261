package layout

import (
	"errors"
	"fmt"
)

// hashSold is a hash with the total and what was sold of it, as in "1001" {total: 500, ordered: 20}.
func hashSold(o Options) (shape, error) {
	if o.TotalField == "" || o.SoldField == "" {
		return shape{}, errors.New("total_field, sold_field: the layout hash_sold needs both")
	}
	return shape{left: unsold, numbers: []NamedKey{
		{Name: "total_field", Text: o.TotalField}, {Name: "sold_field", Text: o.SoldField},
	}}, nil
}

// unsold is total − sold.
func unsold(n []int64) (int64, error) {
	total, sold := n[0], n[1]
	left := total - sold
	if (left < total) != (sold > 0) {
		return 0, fmt.Errorf("total %d − sold %d is not a 64-bit number", total, sold)
	}
	return left, nil
}
