package a2a

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the run when a goroutine outlives it: a stream that was not
// freed, a timer's callback, a follower nobody waits for.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
