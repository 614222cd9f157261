package route

import "fmt"

// Error names the route and the key of it that cannot be compiled.
type Error struct {
	Route, Key string
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("route %q: %s: %v", e.Route, e.Key, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Fault is an *Error.
func Fault(name, key string, err error) error { return &Error{name, key, err} }
