package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The bound of an end in an origin where many sessions have left their artifacts, as
// a ratio to the same where none has; the slack is for 9.5 MB that are copied and flushed to the disk.
const (
	leftSessions  = 5000
	boundManifest = 1.1
	slackManifest = 50 * time.Millisecond
)

// measureManifest ends sessions beside an empty manifest and beside a long one.
func measureManifest(ctx context.Context, p place, o *options, r *report) {
	few, many := newSubject(ctx, p, o.bin, 200), newSubject(ctx, p, o.bin, 200)
	r.head(p.where, p.base, 200)
	many.leave(leftSessions)
	var took [2][]time.Duration
	for i := range 3*o.runs + 1 {
		for j, s := range []*subject{few, many} {
			_, id, _ := s.create()
			c := s.superqode("workspace", "end", "--session", id)
			s.quiet()
			if i > 0 {
				took[j] = append(took[j], c.wall)
			}
		}
	}
	r.ratio(fmt.Sprintf("end after %d sessions : after none", leftSessions), took[1], took[0], bound{ratio: boundManifest, slack: slackManifest, holds: true})
	r.memory(many.m.peak, 200)
	for _, s := range []*subject{few, many} {
		s.m.fail(os.RemoveAll(s.base))
	}
}

// leave writes the manifest as so many sessions leave it.
func (s *subject) leave(sessions int) {
	var list []map[string]any
	for i := range sessions {
		id := fmt.Sprintf("qe-20260102-%02d%02d%02d-abcdef", i/3600, i/60%60, i%60)
		for _, path := range []string{"logs/" + id + "-command.log", "qr/qr-20260102-" + id + ".json", "qr/qr-20260102-" + id + ".md", "qr/qr-20260102-" + id + ".html"} {
			list = append(list, map[string]any{
				"id": fmt.Sprintf("qr-%03d", len(list)+1), "type": "qr", "name": filepath.Base(path), "path": path, "description": "quality report",
				"created_at": "2026-01-02T03:04:05Z", "metadata": map[string]any{"verdict": "pass"}, "original_file": "",
				"session_id": id, "agent_id": "", "sha256": strings.Repeat("0", 64), "size": 0,
			})
		}
	}
	data, err := json.MarshalIndent(map[string]any{"schema_version": 1, "counter": len(list), "artifacts": list}, "", " ")
	s.m.fail(err)
	s.Write(".superqode/qe-artifacts/manifest.json", string(data))
}
