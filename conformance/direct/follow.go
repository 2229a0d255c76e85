package main

import (
	"context"
	"errors"
	"fmt"

	"a2agate/a2a"
)

// until waits for a snapshot.
func until(ctx context.Context, w *a2a.Watch, ok func(a2a.Snapshot) bool) (a2a.Snapshot, error) {
	s := w.Now()
	for !ok(s) {
		next, err := w.Next(ctx, s.Seq)
		if err != nil {
			return next, fmt.Errorf("%w; last seen %+v", err, next)
		}
		if next.Done && !ok(next) {
			return next, fmt.Errorf("it ended otherwise: %+v, %w", next.Task, next.Err)
		}
		s = next
	}
	return s, nil
}

func done(s a2a.Snapshot) bool { return s.Done }

func in(state a2a.State) func(a2a.Snapshot) bool {
	return func(s a2a.Snapshot) bool { return s.Task != nil && s.Task.Status.State == state }
}

func followSend(ctx context.Context, p *peer) error {
	w, err := p.follower.Send(ctx, words("slow 0.3"))
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := until(ctx, w, done)
	if err != nil {
		return err
	}
	if s.Err != nil || len(s.Notes) > 0 {
		return fmt.Errorf("%w, odd: %q", s.Err, s.Notes)
	}
	return wantTask(s.Task, a2a.StateCompleted, "done")
}

// joined follows a task that another has begun until it is done.
func joined(ctx context.Context, p *peer, t *a2a.Task) (a2a.Snapshot, error) {
	w, err := p.follower.Task(ctx, t.ID, t.ContextID)
	if err != nil {
		return a2a.Snapshot{}, err
	}
	defer w.Close()
	return until(ctx, w, done)
}

// followTask joins a task that another has begun.
func followTask(ctx context.Context, p *peer) error {
	t, err := p.slow(ctx, "1")
	if err != nil {
		return err
	}
	s, err := joined(ctx, p, t)
	if err != nil {
		return err
	}
	return wantTask(s.Task, a2a.StateCompleted, "done")
}

// followEnded: a task that has ended is there, whatever its agent answers to a
// subscription.
func followEnded(ctx context.Context, p *peer) error {
	t, err := p.completed(ctx, "task abc")
	if err != nil {
		return err
	}
	s, err := joined(ctx, p, t)
	if err != nil {
		return err
	}
	if s.Lost {
		return errors.New("taken for lost")
	}
	return wantTask(s.Task, a2a.StateCompleted, "cba")
}

func followAnswer(ctx context.Context, p *peer) error {
	w, err := p.follower.Send(ctx, words("ask colour"))
	if err != nil {
		return err
	}
	defer w.Close()
	s, err := until(ctx, w, in(a2a.StateInputRequired))
	if err != nil {
		return err
	}
	answer, err := p.follower.Send(ctx, to(s.Task, "blue"))
	if err != nil {
		return err
	}
	defer answer.Close()
	if s, err = until(ctx, answer, done); err != nil {
		return err
	}
	return wantTask(s.Task, a2a.StateCompleted, "answer = blue")
}

func followCancel(ctx context.Context, p *peer) error {
	w, err := p.follower.Send(ctx, words("slow 30"))
	if err != nil {
		return err
	}
	defer w.Close()
	if _, err := until(ctx, w, func(s a2a.Snapshot) bool { return s.Task != nil }); err != nil {
		return err
	}
	if _, err := w.Cancel(ctx); err != nil {
		return err
	}
	s, err := until(ctx, w, done)
	if err != nil {
		return err
	}
	return wantTask(s.Task, a2a.StateCanceled, "")
}
