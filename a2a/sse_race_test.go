//go:build race

package a2a

// raceSlowdown is how much longer the race detector may take.
const raceSlowdown = 15
