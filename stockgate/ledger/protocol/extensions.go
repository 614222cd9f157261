package protocol

import "errors"

// Owned is what a ledger says of users.
type Owned struct {
	Units []int64 // by position; nil = it has no ledger
	State State   // of the SKU. The units of one that is frozen, verifying or lost may be more
	Err   error
}

// ErrBacklog is the cause when more changes wait for their consumer than they may.
var ErrBacklog = errors.New("changes wait for their consumer")

// ErrFewReplicas is the cause when it was done, but too few replicas had it in time: a fail-over could undo it.
var ErrFewReplicas = errors.New("too few replicas have it")
