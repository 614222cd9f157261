package room

import (
	"errors"
	"fmt"
)

var (
	errNoDraw   = errors.New("the room calls people in the order in which they came: there is no draw to verify")
	errNotDrawn = errors.New("the draw has not been made yet: the seed is published with it")
)

func errFallen(at int64) error {
	return fmt.Errorf("the threshold or the number has fallen at %s: it may only rise",
		clock(at))
}
