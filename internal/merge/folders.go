package merge

import (
	"path"
	"strings"

	"github.com/seed-2d964004/superqode/internal/snapshot"
)

// FolderMoves returns the renamed folders by their old names, given the renamed
// files and whether a folder is left empty: those whose files mostly went to
// one other folder, as git's merge-ort decides. The new name "" is the
// workspace itself.
func FolderMoves(renames map[string]string, empty func(dir string) bool) map[string]string {
	counts := map[string]map[string]int{}
	for old, fresh := range renames {
		for from, to := snapshot.Parent(old), snapshot.Parent(fresh); from != "" && from != to; from, to = snapshot.Parent(from), snapshot.Parent(to) {
			if counts[from] == nil {
				counts[from] = map[string]int{}
			}
			counts[from][to]++
			if to == "" || path.Base(from) != path.Base(to) {
				break // the folders above have different names, too, or none
			}
		}
	}
	moves := map[string]string{}
	for from, to := range counts {
		best, most, alike := "", 0, false
		for dir, n := range to {
			switch {
			case n > most:
				best, most, alike = dir, n, false
			case n == most:
				alike = true
			}
		}
		if !alike && empty(from) {
			moves[from] = best
		}
	}
	return moves
}

// Along returns where a path goes with the renamed folders: with the nearest
// one above it.
func Along(moves map[string]string, p string) (to string, ok bool) {
	for dir := snapshot.Parent(p); dir != ""; dir = snapshot.Parent(dir) {
		if fresh, moved := moves[dir]; moved {
			return strings.TrimPrefix(path.Join(fresh, p[len(dir):]), "/"), true
		}
	}
	return "", false
}
