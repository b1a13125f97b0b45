package findings

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/supervisor"
)

// opAdd adds several findings at once, opAddOne one.
const (
	opAdd    = "findings.add"
	opAddOne = "finding.add"
)

// reply is the supervisor's answer about one finding.
type reply struct {
	ID      string   `json:"id"`
	Ignored []string `json:"ignored,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// Adder adds findings to a session.
type Adder func(context.Context, []json.RawMessage) ([]Added, error)

// Handle enters into m what a program in the session may ask for.
func Handle(m map[string]supervisor.Handler, add Adder) map[string]supervisor.Handler {
	m[opAddOne] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		list, err := add(ctx, []json.RawMessage{args})
		if err != nil {
			return nil, err
		}
		err = list[0].Err
		if field, ok := errors.AsType[*artifacts.FieldError](err); ok {
			err = superqode.Errorf(superqode.ErrUsage, "finding: %s", field)
		}
		return reply{ID: list[0].ID, Ignored: list[0].Ignored}, err
	}
	m[opAdd] = func(ctx context.Context, _ int, args json.RawMessage) (any, error) {
		var raws []json.RawMessage
		if err := json.Unmarshal(args, &raws); err != nil {
			return nil, superqode.Errorf(superqode.ErrUsage, "not a list of findings: %v", err)
		}
		list, err := add(ctx, raws)
		replies := make([]reply, len(list))
		for i, a := range list {
			replies[i] = reply{ID: a.ID, Ignored: a.Ignored}
			if a.Err != nil {
				replies[i].Error = a.Err.Error()
			}
		}
		return replies, err
	}
	return m
}

// Send hands findings to the supervisor of the session that env names.
func Send(ctx context.Context, env []string, raws []json.RawMessage) ([]Added, error) {
	var replies []reply
	if err := supervisor.Call(ctx, env, opAdd, raws, &replies); err != nil {
		return nil, err
	}
	list := make([]Added, len(replies))
	for i, r := range replies {
		list[i] = Added{ID: r.ID, Ignored: r.Ignored}
		if r.Error != "" {
			list[i].Err = superqode.Errorf(superqode.ErrUsage, "%s", r.Error)
		}
	}
	return list, nil
}
