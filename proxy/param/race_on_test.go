//go:build race

package param

const raceEnabled = true
