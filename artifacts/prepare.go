package artifacts

// Prepare makes the store's folders, so that an origin where nothing can be
// written is found out before an hour's work and not after it.
func (s *Store) Prepare() error {
	p, err := s.open(true)
	if err != nil {
		return err
	}
	return p.close()
}
