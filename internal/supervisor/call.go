package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Call sends one request to the supervisor that SUPERQODE_SOCKET in env names
// and decodes its reply. It returns an error that wraps ErrNotFound outside a
// session or when the supervisor is gone. It waits for as long as ctx says, or
// requestTimeout.
func Call(ctx context.Context, env []string, op string, args, into any) error {
	path := superqode.Getenv(env, "SUPERQODE_SOCKET")
	if path == "" {
		return superqode.WithHint(superqode.Errorf(superqode.ErrNotFound, "not inside a session"), "superqode run -- CMD")
	}
	addr, release, err := socketAddr(path)
	if err != nil {
		return err
	}
	defer release()
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", addr)
	if err != nil {
		return superqode.Errorf(superqode.ErrNotFound, "the session's supervisor does not answer: %v", err)
	}
	defer c.Close()
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	line, err := json.Marshal(request{state.SchemaVersion, op, raw})
	if err != nil {
		return err
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(requestTimeout)
	}
	_ = c.SetDeadline(until) // on a fresh connection this cannot fail without the write failing too
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if _, err := c.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ask the supervisor: %w", err)
	}
	var r response
	if err := json.NewDecoder(c).Decode(&r); err != nil {
		return fmt.Errorf("read the supervisor's answer: %w", err)
	}
	if r.Error != nil {
		return r.Error.Err()
	}
	if !r.OK {
		return errors.New("the supervisor sent no result")
	}
	return json.Unmarshal(r.Reply, into)
}

// CallSocket sends one request to the supervisor at path.
func CallSocket(ctx context.Context, path, op string, args, into any) error {
	if err := Call(ctx, []string{"SUPERQODE_SOCKET=" + path}, op, args, into); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}
