package term

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/seed-2d964004/superqode/internal/snapshot/treecopy"
)

// progressDelay is how long a step may take before anything is shown of it, and
// progressTick how often that is brought up to date.
const (
	progressDelay = 300 * time.Millisecond
	progressTick  = 100 * time.Millisecond
)

// Progress shows a step that takes long on a terminal's last line, and takes the
// line away when the step ends.
type Progress struct {
	W  io.Writer
	mu sync.Mutex // held while the line is written
	up *progressbar.ProgressBar
}

// Begin is session.Progress.
func (p *Progress) Begin(step string, meter *treecopy.Meter) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		p.follow(step, meter, stop)
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
}

func (p *Progress) follow(step string, meter *treecopy.Meter, stop <-chan struct{}) {
	select {
	case <-stop:
		return
	case <-time.After(progressDelay):
	}
	tick := time.NewTicker(progressTick)
	defer tick.Stop()
	for {
		p.show(step, meter)
		select {
		case <-stop:
			p.clear()
			return
		case <-tick.C:
		}
	}
}

// show draws the line: a bar where the step counts, else a wheel.
func (p *Progress) show(step string, meter *treecopy.Meter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done, total := int64(0), int64(0)
	if meter != nil {
		done, total = meter.Count()
	}
	if p.up == nil {
		p.up = p.bar(step, total)
	}
	if total > 0 {
		if p.up.GetMax64() != total {
			p.up.ChangeMax64(total)
		}
		_ = p.up.Set64(min(done, total-1)) // at its end the bar would take its line away by itself
		return
	}
	_ = p.up.Add64(1) // a terminal that is gone is no reason to stop
}

// bar makes the line. It turns its wheel only when show tells it: with an interval
// of its own it would write beside clear, and after it.
func (p *Progress) bar(step string, total int64) *progressbar.ProgressBar {
	counts := total > 0
	if !counts {
		total = -1
	}
	return progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.W), progressbar.OptionSetDescription("superqode: "+step),
		progressbar.OptionSetWidth(24), progressbar.OptionSpinnerType(14), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(true), progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(0), progressbar.OptionSetSpinnerChangeInterval(0), func(b *progressbar.ProgressBar) {
			if counts {
				progressbar.OptionShowCount()(b)
			}
		})
}

// clear takes the line away, for the step's end or for a line that others print.
func (p *Progress) clear() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.up != nil {
		_ = p.up.Clear()
		p.up = nil
	}
}
