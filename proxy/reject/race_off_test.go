//go:build !race

package reject

const raceEnabled = false
