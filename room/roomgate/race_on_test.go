//go:build race

package roomgate

const raced = true
