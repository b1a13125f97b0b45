package runner

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// startProcess is os.StartProcess that retries after ETXTBSY: a file that was
// just written cannot be executed while a child that another goroutine is
// forking at the same moment still holds it open for writing (Go issue 22315).
func startProcess(path string, argv []string, attr *os.ProcAttr) (p *os.Process, err error) {
	for i := range 6 {
		p, err = os.StartProcess(path, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) {
			return p, err
		}
		time.Sleep(5 * time.Millisecond << i)
	}
	return p, err
}
