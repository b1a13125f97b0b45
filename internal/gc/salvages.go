package gc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/registry"
	"github.com/seed-2d964004/superqode/internal/salvage"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/snapshot/store"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Salvages returns the salvages of the origin around dir, or of every origin,
// newest first. Those whose session's folder is gone are found by their refs.
func Salvages(ctx context.Context, m *site.Host, dir string, all bool) ([]salvage.Found, error) {
	projects, err := registry.Projects(ctx, m, dir, all)
	if err != nil {
		return nil, err
	}
	var list []salvage.Found
	for _, p := range projects {
		refs, err := salvageRefs(ctx, m, p)
		if err != nil {
			m.Tell(fmt.Sprintf("the store %s cannot be asked for salvages: %v", p.StorePath(), err))
		}
		found, err := salvage.In(p, refs)
		if err != nil {
			return nil, err
		}
		list = append(list, found...)
	}
	slices.SortStableFunc(list, func(a, b salvage.Found) int { return b.At.Compare(a.At) })
	return list, nil
}

// FindSalvage returns the salvage that a person named: "<session>/<n>", with the
// session's id or any unique prefix or suffix of it; a session alone that has
// one salvage; or the salvage's ref. The salvages of the origin around dir come
// first, then those of every origin. The error wraps ErrNotFound or, when the
// name is ambiguous, ErrUsage.
func FindSalvage(ctx context.Context, m *site.Host, dir, name string) (*salvage.Found, error) {
	for _, all := range []bool{false, true} {
		list, err := Salvages(ctx, m, dir, all)
		if err != nil {
			if !all {
				continue // not in a repository, or git is broken there: the name may still say which
			}
			return nil, err
		}
		if sv, err := salvage.Pick(list, name); !errors.Is(err, superqode.ErrNotFound) {
			return sv, err
		}
	}
	return nil, superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "no salvage matches %q", name), "superqode workspace restore --list --all")
}

// salvageRefs asks a project's store, if there is one.
func salvageRefs(ctx context.Context, m *site.Host, p state.Project) ([]store.Ref, error) {
	store, err := m.ExistingStore(ctx, p)
	if err != nil || store == nil {
		return nil, err
	}
	return store.ListRefs(ctx, "refs/superqode/")
}
