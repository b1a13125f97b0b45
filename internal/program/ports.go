package program

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/lockfile"
	"github.com/seed-2d964004/superqode/internal/site"
	"github.com/seed-2d964004/superqode/internal/state"
)

// Each session has a block of ports of its own, SUPERQODE_PORT and the nine after
// it. Below $SUPERQODE_HOME/ports a symbolic link named like the block's first port
// leads to the session that has it: making a link either works or finds one there,
// so no two sessions of one home get the same block. That no other program uses the
// ports is tried by listening on them.
const (
	portBlock = 10
	firstPort = 20000 // below the ranges from which systems take ports for clients
	portSlots = 1200
)

// takePorts gives the session a block. Without one a session works as well, so
// if there is none it reports that and returns 0.
func (s *Program) takePorts(ctx context.Context) {
	port, err := blockOf(ctx, s.Host, s.Folder, s.Rec.ID)
	if err != nil {
		s.Warn(fmt.Sprintf("there is no SUPERQODE_PORT: %v", err))
	}
	s.Rec.Port = port
}

func portsPath(m *site.Host) string { return filepath.Join(m.Home, "ports") }

func blockOf(ctx context.Context, m *site.Host, sessionDir string, id superqode.SessionID) (int, error) {
	if err := os.MkdirAll(portsPath(m), 0o700); err != nil {
		return 0, err
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id.String())) // never fails
	from := int(h.Sum32() % portSlots)
	for round := range 2 {
		for i := range portSlots {
			if ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
			port := firstPort + (from+i)%portSlots*portBlock
			link := filepath.Join(portsPath(m), strconv.Itoa(port))
			err := os.Symlink(sessionDir, link)
			if errors.Is(err, os.ErrExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			if portsFree(port) {
				return port, nil
			}
			if err := os.Remove(link); err != nil {
				return 0, err
			}
		}
		if round == 0 {
			if err := freeStalePorts(ctx, m); err != nil {
				return 0, err
			}
		}
	}
	return 0, fmt.Errorf("all %d blocks from %d on are taken", portSlots, firstPort)
}

// freeStalePorts takes back the blocks of sessions that are gone or done, for whom
// nobody did it. The lock keeps two processes from taking back the same block when
// one of them has just given it away again.
func freeStalePorts(ctx context.Context, m *site.Host) (err error) {
	unlock, err := lockfile.Lock(ctx, filepath.Join(m.Home, "ports.lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	names, err := state.Names(portsPath(m))
	for _, name := range names {
		link := filepath.Join(portsPath(m), name)
		dir, lerr := os.Readlink(link)
		if lerr != nil {
			continue // given back meanwhile
		}
		l, lerr := state.Load(dir)
		if atomicfile.Exists(dir) && (lerr != nil || l.State != superqode.StateDone) {
			continue
		}
		if rerr := os.Remove(link); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

// FreePorts gives the session's block back.
func (s *Program) FreePorts() error {
	if s.Rec.Port == 0 {
		return nil
	}
	link := filepath.Join(portsPath(s.Host), strconv.Itoa(s.Rec.Port))
	if dir, err := os.Readlink(link); err != nil || dir != s.Folder {
		return nil // given back before
	}
	if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// portsFree tries to listen on each port of a block, which also fails where
// somebody listens on all addresses.
func portsFree(first int) bool {
	for port := first; port < first+portBlock; port++ {
		for _, host := range []string{"127.0.0.1", "::1"} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
			if err == nil {
				_ = l.Close() // nobody was there
			} else if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
				return false
			}
		}
	}
	return true
}
