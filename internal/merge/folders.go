package merge

import (
	"path"
	"strings"

	"github.com/seed-2d964004/superqode"
)

// FolderMoves returns the renamed folders by their old names, given the renamed
// files and whether a folder is left empty: those whose files mostly went to
// one other folder, as git's merge-ort decides. The new name "" is the
// workspace itself.
func FolderMoves(renames map[superqode.RelPath]superqode.RelPath, empty func(dir superqode.RelPath) bool) map[superqode.RelPath]string {
	counts := map[superqode.RelPath]map[string]int{}
	for old, fresh := range renames {
		for from, to := old.Parent(), fresh.Parent(); from != "" && from != to; from, to = from.Parent(), to.Parent() {
			if counts[from] == nil {
				counts[from] = map[string]int{}
			}
			counts[from][string(to)]++
			if to == "" || from.Name() != to.Name() {
				break // the folders above have different names, too, or none
			}
		}
	}
	moves := map[superqode.RelPath]string{}
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
func Along(moves map[superqode.RelPath]string, p superqode.RelPath) (to superqode.RelPath, ok bool) {
	for dir := p.Parent(); dir != ""; dir = dir.Parent() {
		if fresh, moved := moves[dir]; moved {
			return superqode.RelPath(strings.TrimPrefix(path.Join(fresh, string(p[len(dir):])), "/")), true
		}
	}
	return "", false
}
