package layout

import (
	"errors"
)

// hashLeft is a hash with a field that holds what is left, as in "1001" {inStock: 500}. The shop takes units by
// HINCRBY −n and gives them back when the result is negative: a negative value may be undone a moment later.
func hashLeft(o Options) (shape, error) {
	if o.LeftField == "" {
		return shape{}, errors.New("left_field: the layout hash_left needs it")
	}
	return shape{numbers: []NamedKey{{Name: "left_field", Text: o.LeftField}}, left: only}, nil
}
