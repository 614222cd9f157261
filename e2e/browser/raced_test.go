//go:build race

package browser

// raced tells whether these tests run under the race detector; the binary is then built with it too.
const raced = true
