package param

import (
	"errors"
	"fmt"
	"strings"

	"sluice/proxy/reject"
)

// Condition compares one variable with a constant: "$jwt_level>=2". "=" and "!=" compare text, byte by byte. The other
// operators compare whole numbers of at most 15 digits; a value that is none does not meet them. It is safe for
// concurrent use.
type Condition struct {
	text     string
	variable Variable
	operator string // one of operators
	want     string // of "=" and "!="
	number   int64  // of the others
}

// operators, those of two bytes first.
var operators = []string{"!=", ">=", "<=", "=", ">", "<"}

// CompileConditions parses conditions in their order, up to the first that is not valid.
func CompileConditions(texts, names []string) (compiled []Condition, err error) {
	for _, text := range texts {
		c, err := CompileCondition(text, names)
		if err != nil {
			return compiled, err
		}
		compiled = append(compiled, c)
	}
	return compiled, nil
}

// CompileCondition parses text: a variable, an operator, a constant, and spaces between them. names are those of
// Compile.
func CompileCondition(text string, names []string) (c Condition, err error) {
	at := operatorAt(text)
	if at < 0 {
		return c, fmt.Errorf("%q compares nothing; write it like \"$jwt_level>=2\"", text)
	}
	c.text = text
	for _, operator := range operators {
		if c.want, _ = strings.CutPrefix(text[at:], operator); len(c.want) < len(text[at:]) {
			c.operator = operator
			break
		}
	}
	c.want = strings.TrimSpace(c.want)
	if c.operator == "" || strings.ContainsAny(c.want, "=!<>") {
		return c, fmt.Errorf("%q has an unknown operator; write one of = != >= <= > <", text)
	}
	if c.variable, err = Compile(strings.TrimSpace(text[:at]), names); err != nil {
		return c, err
	}
	switch {
	case c.variable.Empty():
		return c, fmt.Errorf("%q has no variable before %s; write it like \"$jwt_level>=2\"", text, c.operator)
	case c.variable.Fixed():
		return c, fmt.Errorf("%q is the same for every request: write a variable, like \"$jwt_%[1]s\"", c.variable.text)
	case len(c.variable.parts) > 1:
		return c, fmt.Errorf("%q is more than one variable; write a condition for each", c.variable.text)
	}
	return c, c.compileConstant()
}

// CompilePriority parses the condition whose requests go first in the queue; nil = there is none. The body is not read
// yet when requests queue.
func CompilePriority(text string) (*Condition, error) {
	if text == "" {
		return nil, nil
	}
	c, err := CompileCondition(text, nil)
	switch {
	case err != nil && operatorAt(text) < 0:
		return nil, fmt.Errorf("%q is no condition; write which requests go first, like \"$jwt_level=vip\"", text)
	case err != nil:
		return nil, err
	case c.variable.NeedsBody():
		return nil, fmt.Errorf("%q is in the body, which is not read yet in the queue: write a variable of the head",
			c.variable.text)
	}
	return &c, nil
}

// operatorAt is where the operator begins, which is not within the quotes of a name; -1 = there is none.
func operatorAt(text string) int {
	for i := 0; i < len(text); i++ {
		if strings.IndexByte("=!<>", text[i]) >= 0 {
			return i
		}
		if text[i] == '$' {
			if _, rest, ok, err := parseQuoted(text[i+1:]); ok && err == nil {
				i = len(text) - len(rest) - 1
			}
		}
	}
	return -1
}

func (c *Condition) compileConstant() error {
	switch {
	case c.want == "":
		return fmt.Errorf("%q has no constant behind %s; write it like \"$jwt_level>=2\"", c.text, c.operator)
	case strings.Contains(c.want, "$"):
		return fmt.Errorf("%q has a variable behind %s; write a constant", c.text, c.operator)
	case c.operator == "=" || c.operator == "!=":
		return nil
	}
	var ok bool
	if c.number, ok = wholeNumber([]byte(c.want)); !ok {
		return errors.New(c.operator + " compares whole numbers of at most 15 digits, and \"" + c.want +
			"\" is none; write one, or use = or !=")
	}
	return nil
}

// String is the condition as configured.
func (c *Condition) String() string { return c.text }

// Variable is what is compared.
func (c *Condition) Variable() *Variable { return &c.variable }

// Holds reports whether the request meets the condition. It does not where its value is missing, or can be read in two
// ways. A nil condition holds for no request.
func (c *Condition) Holds(s *Source) bool {
	if c == nil {
		return false
	}
	value, fault := c.variable.Value(s)
	return fault.Reason == reject.Admitted && len(value) > 0 && c.MetBy(value)
}

// MetBy reports whether value, which is not empty, meets the condition. It does not allocate.
func (c *Condition) MetBy(value []byte) bool {
	switch c.operator {
	case "=":
		return string(value) == c.want
	case "!=":
		return string(value) != c.want
	}
	number, ok := wholeNumber(value)
	switch c.operator {
	case ">=":
		return ok && number >= c.number
	case "<=":
		return ok && number <= c.number
	case ">":
		return ok && number > c.number
	}
	return ok && number < c.number
}

// wholeNumber reads digits, at most 15 of them, behind a "-" where it is negative.
func wholeNumber(text []byte) (number int64, ok bool) {
	digits := text
	if len(text) > 0 && text[0] == '-' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = 10*number + int64(c-'0')
	}
	if len(digits) < len(text) {
		number = -number
	}
	return number, true
}
