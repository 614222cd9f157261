package layout

import "fmt"

// Together reports whether one MGET reads many SKUs: each has one key alone, and that is a string. MGET says of a key
// of another type that it is missing, so what is missing must be asked for by Queue before it is believed.
func (l *Layout) Together() bool {
	return l.Commands() == 1 && l.hash == nil && !l.list && l.script == nil
}

// ReadString is Read of a layout whose SKUs are read together, for one whose key holds value.
func (l *Layout) ReadString(sku, value string) Reading {
	left, err := units(value)
	if err != nil {
		return Reading{Fault: fmt.Errorf("read %q: %w", l.Key(sku), err)}
	}
	return Reading{Left: left, Free: minus(left, l.soldOutAt), Exists: true, OnSale: true}
}
