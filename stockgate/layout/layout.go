// Package layout reads how a shop already keeps its stock in Redis, so that nothing has to be renamed.
//
// It promises that a reading is what the shop's keys say or a named fault: a missing key is a missing key,
// never 0 and never unlimited; a value that is not an integer is a fault, never a guess. It decides nothing
// about requests, and it never takes stock: only an operator's Set and Add write.
package layout

import (
	"errors"
	"fmt"
	"slices"
)

// The layouts that can be read.
const (
	Counter  = "counter"   // a string: what is left
	HashSold = "hash_sold" // a hash: the total and what was sold of it
	HashLeft = "hash_left" // a hash: what is left
)

// Options are the keys under [stock.layout]. Keys may contain $sku anywhere and any number of times;
// $$ is a dollar sign.
type Options struct {
	Type        string   // Counter, HashSold or HashLeft
	Key         string   // must contain $sku
	TotalField  string   // HashSold
	SoldField   string   // HashSold
	LeftField   string   // HashLeft
	StatusKey   string   // a string that says whether the SKU is on sale; "" = none
	StatusField string   // or a field of the layout's hash; "" = none
	StatusOpen  []string // the statuses that mean "on sale"; a missing status is ""
	SoldOutAt   int64    // this many left, or fewer, is sold out; may be negative
	SoldOutFlag string   // a key whose existence means sold out; "" = none
	Prefix      string   // put before every key
}

// Layout is a compiled [stock.layout]. It is immutable and safe for concurrent use.
type Layout struct {
	shape
	key, status, flag template
	statusField       string
	statusOpen        []string
	soldOutAt         int64
}

// shape is what the layouts differ in.
type shape struct {
	numbers []string                       // the hash's fields that hold numbers, the one that Set writes first; nil = a string
	left    func(n []int64) (int64, error) // what is left, from the numbers in that order
}

// New compiles o. Its errors name the key of the configuration.
func New(o Options) (*Layout, error) {
	l := &Layout{statusField: o.StatusField, statusOpen: slices.Clone(o.StatusOpen), soldOutAt: o.SoldOutAt}
	var err error
	if l.shape, err = shapeOf(o); err != nil {
		return nil, err
	}
	if l.key, err = compile("key", o.Prefix, o.Key); err != nil {
		return nil, err
	}
	if !l.key.named() {
		return nil, fmt.Errorf("key %q: it must contain $sku, or all SKUs would share one stock", o.Key)
	}
	if l.status, err = compile("status_key", o.Prefix, o.StatusKey); err != nil {
		return nil, err
	}
	if l.flag, err = compile("sold_out_flag", o.Prefix, o.SoldOutFlag); err != nil {
		return nil, err
	}
	return l, l.checkStatus(o)
}

// checkStatus refuses statuses that could never be read or never be open.
func (l *Layout) checkStatus(o Options) error {
	switch {
	case o.StatusKey == "" && o.StatusField == "":
		return nil
	case o.StatusKey != "" && o.StatusField != "":
		return errors.New("status_key, status_field: only one of them can say whether a SKU is on sale")
	case o.StatusField != "" && l.numbers == nil:
		return fmt.Errorf("status_field: the layout %q has no hash; use status_key", o.Type)
	case len(o.StatusOpen) == 0:
		return errors.New("status_open: it is empty, so nothing would ever be on sale")
	}
	return nil
}

// shapeOf picks the layout's numbers.
func shapeOf(o Options) (shape, error) {
	switch o.Type {
	case Counter:
		return counter(), nil
	case HashSold:
		return hashSold(o)
	case HashLeft:
		return hashLeft(o)
	}
	return shape{}, fmt.Errorf("type %q: use %q, %q or %q", o.Type, Counter, HashSold, HashLeft)
}
