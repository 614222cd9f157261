package param

import (
	"fmt"

	"sluice/proxy/reject"
)

// Priority is where the class of a request in a queue is found. The zero value is nowhere: all have class 0. It is safe
// for concurrent use.
type Priority struct{ variable Variable }

// CompilePriority parses text. The body is not read yet when requests queue.
func CompilePriority(text string) (p Priority, err error) {
	if p.variable, err = Compile(text, nil); err != nil {
		return p, err
	}
	if p.variable.NeedsBody() {
		return p, fmt.Errorf("%q is in the body, which is not read yet in the queue: write a variable of the head", text)
	}
	return p, nil
}

// Variable is what the class is made of. The caller must not change it.
func (p *Priority) Variable() *Variable { return &p.variable }

// Of is the class of a request, 0 to 9: what it says of it, where that is a whole number, and 9 for more. A request
// that says nothing, or what can be read in two ways, has class 0.
func (p *Priority) Of(from *Source) (class int) {
	if p.variable.Empty() {
		return 0
	}
	value, fault := p.variable.Value(from)
	if fault.Reason != reject.Admitted {
		return 0
	}
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0
		}
		class = min(class*10+int(c-'0'), 9)
	}
	return class
}
