package script

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// codes say what the values that a script returns mean.
type codes struct {
	exact    map[string]outcome // by the value as text; "nil" for none
	quantity outcome            // of the order's quantity; unknown = not in the table
	atLeast  bound
	atMost   bound
}

// bound is one of the codes ">=N" and "<=N"; its outcome is unknown where there is none.
type bound struct {
	n       int64
	outcome outcome
}

// compileCodes reads stock.script.codes.
func compileCodes(table map[string]string) (c codes, errs []error) {
	c.exact = make(map[string]outcome)
	for _, code := range slices.Sorted(maps.Keys(table)) {
		meaning := outcomeOf(table[code])
		if meaning == unknown {
			names := outcomeNames()
			errs = append(errs, fmt.Errorf("%s = %q: write one of %s", code, table[code],
				strings.Join(names[taken:failed], ", ")))
			continue
		}
		if err := c.add(code, meaning); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && !slices.Contains(slices.Collect(maps.Values(table)), taken.String()) {
		errs = append(errs,
			fmt.Errorf("no value means taken; write the one that the script returns when it took the units, like 1 = \"taken\""))
	}
	return c, errs
}

// outcomeOf is the outcome of a name that codes may hold; unknown for any other.
func outcomeOf(name string) outcome {
	for o := taken; o < failed; o++ {
		if o.String() == name {
			return o
		}
	}
	return unknown
}

func (c *codes) add(code string, meaning outcome) error {
	for prefix, b := range map[string]*bound{">=": &c.atLeast, "<=": &c.atMost} {
		number, ok := strings.CutPrefix(code, prefix)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || b.outcome != unknown {
			return fmt.Errorf("%q: write one code of this kind, with a whole number behind it", code)
		}
		*b = bound{n, meaning}
		return nil
	}
	if code == "$quantity" {
		c.quantity = meaning
		return nil
	}
	if strings.HasPrefix(code, "$") || strings.HasPrefix(code, "<") || strings.HasPrefix(code, ">") {
		return fmt.Errorf("%q: a code is a value, $quantity, >=N or <=N", code)
	}
	c.exact[code] = meaning
	return nil
}

// outcomeOf tells what a reply to an order of so many units means; false when codes do not say.
func (c *codes) outcomeOf(reply any, quantity int64) (outcome, bool) {
	value := "nil"
	if code := replyCode(reply); code != nil {
		value = fmt.Sprint(code)
	}
	if found, ok := c.exact[value]; ok {
		return found, true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil:
		return unknown, false
	case c.quantity != unknown && n == quantity:
		return c.quantity, true
	case c.atLeast.outcome != unknown && n >= c.atLeast.n:
		return c.atLeast.outcome, true
	case c.atMost.outcome != unknown && n <= c.atMost.n:
		return c.atMost.outcome, true
	}
	return unknown, false
}

// replyCode is the code of a reply: all of it, or the first of its values.
func replyCode(reply any) any {
	if values, ok := reply.([]any); ok {
		if len(values) == 0 {
			return nil
		}
		return values[0]
	}
	return reply
}

// replyValues is what a reply has behind its code.
func replyValues(reply any) []any {
	if values, ok := reply.([]any); ok && len(values) > 1 {
		return values[1:]
	}
	return nil
}

// givenBack tells what the script that gives back has returned: a number above 0 or a status means that it did, a code
// that means busy that it is to be tried later, 0 or less and nothing that there was nothing to give back.
func (c *codes) givenBack(reply any, quantity int64) (outcome, bool) {
	if found, ok := c.outcomeOf(reply, quantity); ok && found == busy {
		return busy, true
	}
	switch code := replyCode(reply).(type) {
	case int64:
		if code > 0 {
			return taken, true
		}
		return soldOut, true
	case nil:
		return soldOut, true
	case string:
		return taken, code == "OK"
	}
	return unknown, false
}
