//go:build !race

package a2a

// raceSlowdown is 1 without the race detector.
const raceSlowdown = 1
