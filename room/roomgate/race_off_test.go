//go:build !race

package roomgate

// raced reports a test under the race detector, where pools drop what they are given.
const raced = false
