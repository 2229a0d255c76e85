package handles

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func reserving(t *testing.T, limit int) *Table {
	t.Helper()
	table, err := New(Options{TTL: time.Minute, Max: limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Close() })
	return table
}

// The room that was reserved is there when all else is taken, for one task.
func TestReservedRoom(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	table := reserving(t, 2)
	room, err := table.Reserve(ctx, "ann", "demo", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table.Task(ctx, "ann", "demo", "c", "t0", true); err != nil {
		t.Fatal(err)
	}
	if _, err := table.Reserve(ctx, "ann", "demo", 0); !errors.Is(err, ErrFull) {
		t.Errorf("a second reservation: %v", err)
	}
	var seen []string
	if err := table.Each(ctx, KindTask, func(e Entry) bool { seen = append(seen, e.TaskID); return true }); err != nil || len(seen) != 1 || seen[0] != "t0" {
		t.Errorf("Each shows %q, %v: a reservation is no task", seen, err)
	}
	e, err := room.Task(ctx, "c", "t1", true)
	if err != nil || e.TaskID != "t1" || e.Principal != "ann" || e.Agent != "demo" {
		t.Fatalf("%+v, %v", e, err)
	}
	if again, err := table.Task(ctx, "ann", "demo", "c", "t1", true); err != nil || again.Handle != e.Handle {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := room.Task(ctx, "c", "t2", true); !errors.Is(err, ErrFull) {
		t.Errorf("a second task in the room of one: %v", err)
	}
	room.Release(ctx)
	if _, err := table.Lookup(ctx, KindTask, e.Handle, "ann"); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestReleasedRoom(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	table := reserving(t, 1)
	for range 3 {
		room, err := table.Reserve(ctx, "ann", "demo", 0)
		if err != nil {
			t.Fatal(err)
		}
		room.Release(ctx)
		room.Release(ctx)
	}
	var none *Reservation
	none.Release(ctx)
	if n, err := table.store.Len(ctx); n != 0 || err != nil {
		t.Errorf("%d entries left, %v", n, err)
	}
}

// However many ask for room at once, whoever has it reserved gets a handle.
func TestReservedRoomAmongMany(t *testing.T) {
	t.Parallel()
	const limit = 8
	ctx := context.Background()
	table := reserving(t, limit)
	var wg sync.WaitGroup
	got := make(chan bool, 200)
	for i := range 200 {
		wg.Go(func() {
			room, err := table.Reserve(ctx, "ann", "demo", 0)
			if err != nil {
				return
			}
			defer room.Release(ctx)
			_, err = room.Task(ctx, "", fmt.Sprint("t", i), true)
			got <- err == nil
		})
	}
	wg.Wait()
	close(got)
	n := 0
	for ok := range got {
		if !ok {
			t.Error("reserved, and yet no room")
		}
		n++
	}
	if n < limit/2 {
		t.Errorf("%d had a handle", n)
	}
}

// A reservation leaves nothing behind in any store, whether it was used or not.
func TestReservationOnEveryStore(t *testing.T) {
	onEveryStore(t, func(t *testing.T, tab *Table) {
		ctx := context.Background()
		room, err := tab.Reserve(ctx, "ann", "demo", 0)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := tab.store.Len(ctx); n != 1 || err != nil {
			t.Errorf("%d entries with one reservation, %v", n, err)
		}
		e, err := room.Task(ctx, "c", "t1", true)
		if err != nil || e.TaskID != "t1" {
			t.Fatalf("%+v, %v", e, err)
		}
		room.Release(ctx)
		if n, err := tab.store.Len(ctx); n != 1 || err != nil {
			t.Errorf("%d entries with one task, %v", n, err)
		}
		if got, err := tab.Lookup(ctx, KindTask, e.Handle, "ann"); err != nil || got.TaskID != "t1" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Room is kept for as long as was asked for, and no longer where nobody gives
// it back.
func TestReservedRoomIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		table := reserving(t, 1)
		room, err := table.Reserve(ctx, "ann", "demo", 30*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(29 * time.Minute)
		if _, err := table.Reserve(ctx, "ann", "demo", 0); !errors.Is(err, ErrFull) {
			t.Errorf("a second reservation: %v", err)
		}
		if _, err := room.Task(ctx, "c", "t1", false); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if _, err = table.Reserve(ctx, "ann", "demo", 30*time.Minute); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Minute)
		if _, err := table.Task(ctx, "ann", "demo", "c", "t2", true); err != nil {
			t.Errorf("room that nobody has given back: %v", err)
		}
	})
}
