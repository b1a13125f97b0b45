package session

import "slices"

// warn shows lines to the person at the terminal and keeps them for the report, each
// once.
func (s *Session) warn(lines ...string) {
	for _, l := range lines {
		if !slices.Contains(s.rec.Warnings, l) {
			s.rec.Warnings = append(s.rec.Warnings, l)
			s.m.cfg.Warn(l)
		}
	}
}
