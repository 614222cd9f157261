package param

import (
	"fmt"
	"slices"
	"strings"

	"sluice/proxy/reject"
)

// anyElement is the key of a JSON path that stands for each element of an array: $json_items.*.sku_id.
const anyElement = "*"

// IsList reports whether text names a value in each element of a JSON array, as the lines of a cart have.
func IsList(text string) bool { return strings.Contains(text, "."+anyElement) }

// CompileLines parses two lists of one array: "$json_items.*.sku_id" and "$json_items.*.qty".
func CompileLines(sku, quantity string) (a, b Variable, err error) {
	if a, err = compileText(sku, nil); err == nil {
		b, err = compileText(quantity, nil)
	}
	if err != nil {
		return a, b, err
	}
	if a.IsList() && b.IsList() {
		one, _ := a.parts[0].array()
		other, _ := b.parts[0].array()
		if slices.Equal(one, other) {
			return a, b, nil
		}
	}
	return Variable{}, Variable{}, fmt.Errorf("%q and %q: the lines of a cart stand in one array; write sku = "+
		"\"$json_items.*.sku_id\" and quantity = \"$json_items.*.qty\"", sku, quantity)
}

// IsList reports a variable that CompileLines has made.
func (v *Variable) IsList() bool {
	return len(v.parts) == 1 && v.parts[0].kind == JSON && slices.Contains(v.parts[0].keys, anyElement)
}

// array is the path of the array of a list, and the path in each of its elements.
func (p *Part) array() (before, in []string) {
	i := slices.Index(p.keys, anyElement)
	return p.keys[:i], p.keys[i+1:]
}

// Each shows see the value of v in each element of its array, nil where an element has none, until it returns false.
// Without such an array it shows nothing. The values belong to the request and to s.
func (v *Variable) Each(s *Source, see func(i int, value []byte) bool) Fault {
	p := &v.parts[0]
	if fault := s.readJSON(p); fault.Reason != reject.Admitted {
		return fault
	}
	before, in := p.array()
	r := jsonReader{scratch: s.scratch, lists: true, beans: true}
	defer func() { s.scratch = r.scratch }()
	array := r.valueAt(s.Body, before, false)
	if array == nil || array[0] != '[' {
		return r.fault(p)
	}
	b := skipJSONSpace(array[1:])
	for i := 0; b[0] != ']'; i++ {
		var item []byte
		item, b = cutJSONValue(b)
		b = skipJSONComma(b)
		text := r.valueAt(item, in, false)
		if fault := r.fault(p); fault.Reason != reject.Admitted {
			return fault
		}
		value, fault := s.jsonScalar(text, p)
		if fault.Reason != reject.Admitted {
			return fault
		}
		if !see(i, value) {
			return Fault{}
		}
	}
	return Fault{}
}
