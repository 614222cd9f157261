//go:build race

package room

const raced = true
