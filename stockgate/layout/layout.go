// Package layout reads how a shop already keeps its stock in Redis, so that nothing has to be renamed.
//
// It promises that a reading is what the shop's keys say or a named fault: a missing key is a missing key,
// never 0 and never unlimited; a value that is not an integer is a fault, never a guess. It decides nothing
// about requests, and it never takes stock. It writes for an operator (Set, Add), for a ledger (Mirror) and for sales
// (Fill, SetStatus), and nothing by itself.
package layout

import (
	"errors"
	"fmt"
	"slices"

	"sluice/stockgate/redisconn"
)

// The layouts that can be read.
const (
	Counter      = "counter"       // a string: what is left
	HashSold     = "hash_sold"     // a hash: the total and what was sold of it
	HashLeft     = "hash_left"     // a hash: what is left
	CounterUsers = "counter_users" // a counter, and a set of the users who have bought
	List         = "list"          // a list of units
	Script       = "script"        // whatever the shop's own script makes of its keys
)

// Options are the keys under [stock.layout]. Keys may contain $sku anywhere and any number of times, or its
// parts between colons as $sku_1 to $sku_3; $$ is a dollar sign.
type Options struct {
	Type         string   // one of the layouts above
	Key          string   // must contain $sku, or all of its parts; of a hash, its fields may contain them instead
	TotalField   string   // HashSold; a template like Key, as the other fields are
	SoldField    string   // HashSold
	LeftField    string   // HashLeft
	StatusKey    string   // a string that says whether the SKU is on sale; "" = none
	StatusField  string   // or a field of the layout's hash; "" = none
	StatusOpen   []string // the statuses that mean "on sale"; a missing status is ""
	StatusClosed string   // what is written where it is not
	UsersKey     string   // a set of the users who have bought, with any layout; "" = none
	SoldOutAt    int64    // this many left, or fewer, is sold out; may be negative
	SoldOutFlag  string   // a key whose existence means sold out; "" = none
	Prefix       string   // put before every key
	Script       string   // Script: its text

	Name redisconn.Name // of the shop, in the keys of Mirror, Fill and SetStatus
}

// Layout is a compiled [stock.layout]. It is immutable and safe for concurrent use. Each kind of
// keys is read, written and checked by methods of its own.
type Layout struct {
	shape
	key, status, flag, users KeyTemplate
	hash                     *hash // nil = the key is none
	parts                    int   // of a SKU that key and fields name
	named                    []NamedKey
	prefix                   string
	name                     redisconn.Name
	statusOpen               []string
	statusClosed             string
	soldOutAt                int64
}

// shape is what the layouts differ in. A string that holds what is left has none of the first three.
type shape struct {
	numbers []NamedKey // the hash's fields that hold numbers, the one that Set writes first
	list    bool       // the key is a list
	script  *script    // the key is known to a script alone

	left func(n []int64) (int64, error) // what is left, from the numbers in that order
}

// New compiles o. Its errors name the key of the configuration.
func New(o Options) (*Layout, error) {
	l := &Layout{statusOpen: slices.Clone(o.StatusOpen), statusClosed: o.StatusClosed, soldOutAt: o.SoldOutAt,
		named: keysOf(o), prefix: o.Prefix, name: o.Name}
	var err error
	if l.shape, err = shapeOf(o); err != nil {
		return nil, err
	}
	if err = l.compileKeys(o); err != nil {
		return nil, err
	}
	return l, l.checkStatus(o)
}

// compileKeys reads the templates.
func (l *Layout) compileKeys(o Options) (err error) {
	if l.key, err = CompileKey("key", o.Prefix, o.Key); err != nil {
		return err
	}
	l.parts = l.key.Parts()
	if l.numbers != nil {
		if err = l.compileHash(o); err != nil {
			return err
		}
	} else if err = tells("key", o.Key, l.key, l.parts); err != nil {
		return err
	}
	for _, k := range []struct {
		name, text string
		into       *KeyTemplate
	}{
		{"status_key", o.StatusKey, &l.status}, {"sold_out_key", o.SoldOutFlag, &l.flag},
		{"users_key", o.UsersKey, &l.users},
	} {
		if *k.into, err = CompileKey(k.name, o.Prefix, k.text); err != nil {
			return err
		}
		if n := k.into.Parts(); n > l.parts {
			return fmt.Errorf("%s %q: it names part %d of the SKU, and key does not", k.name, k.text, n)
		}
	}
	return nil
}

// tells is the error for a place of the stock that several SKUs would share.
func tells(name, text string, t KeyTemplate, parts int) error {
	switch {
	case !t.Named():
		return fmt.Errorf("%s %q: it must contain $sku, or all SKUs would share one stock", name, text)
	case !t.Tells(parts):
		return fmt.Errorf("%s %q: several SKUs would share one stock; name all parts from $sku_1 to $sku_%d with colons "+
			"or braces between them, or $sku", name, text, parts)
	}
	return nil
}

// checkStatus rejects statuses that could never be read or never be open.
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

// shapeOf picks what the layout reads.
func shapeOf(o Options) (shape, error) {
	switch o.Type {
	case Counter:
		return counter(), nil
	case CounterUsers:
		return counterUsers(o)
	case HashSold:
		return hashSold(o)
	case HashLeft:
		return hashLeft(o)
	case List:
		return list(), nil
	case Script:
		return scripted(o)
	}
	return shape{}, fmt.Errorf("type %q: use %q, %q, %q, %q, %q or %q", o.Type, Counter, HashSold, HashLeft, CounterUsers,
		List, Script)
}
