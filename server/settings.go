package server

// Settings are what of the Options can be replaced while a Server runs; zero
// fields take the defaults. The times for reading headers and for idle
// connections stay those that Serve began with.
type Settings struct {
	Guard  GuardOptions
	Limits Limits
	Pace   Pace
}

// inForce is what the requests that come now go by. It is immutable; a request
// that comes while it is replaced may pass the old guard and be served by the
// new limits; once past the guard it keeps to what it has.
type inForce struct {
	guard  *guard
	limits Limits
	pace   Pace
}

// Reconfigure puts new settings in force for the requests to come. The error
// names every wrong setting; then nothing has changed. It may be called at any
// time.
func (s *Server) Reconfigure(o Settings) error {
	g, err := newGuard(o.Guard)
	if err != nil {
		return err
	}
	s.now.Store(&inForce{guard: g, limits: o.Limits.withDefaults(), pace: o.Pace.withDefaults()})
	return nil
}
