package codeexec

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-2d964004/superqode/artifacts"
)

// EventsFile is the name of the file, and of the artifact, that has what was done in a
// workspace.
const EventsFile = "events.jsonl"

// maxEvents is the size of EventsFile, in bytes, from which on nothing is added.
const maxEvents = 8 << 20

// Names of spans.
const (
	spanCreate  = "workspace.create"
	spanCleanup = "workspace.cleanup"
	spanPut     = "workspace.stage.files"
	spanDir     = "workspace.stage.dir"
	spanInputs  = "workspace.stage.inputs"
	spanRun     = "workspace.run"
	spanCollect = "workspace.collect"
)

// event is one line of EventsFile. Contents and values of variables are in none.
type event struct {
	Time       time.Time      `json:"time"` // of the beginning
	Name       string         `json:"name"`
	Seconds    float64        `json:"seconds"`
	Attributes map[string]any `json:"attributes"`
	Error      string         `json:"error"`
}

// span begins one. The function ends it, with what else is to be said of it.
func (w *Workspace) span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(err error, more ...attribute.KeyValue)) {
	began := time.Now()
	attrs = append(attrs, attribute.String("workspace.id", w.ID))
	var span trace.Span
	if w.tracer != nil {
		ctx, span = w.tracer.Start(ctx, name, trace.WithAttributes(attrs...))
	}
	return ctx, func(err error, more ...attribute.KeyValue) {
		e := event{Time: began.UTC(), Name: name, Seconds: time.Since(began).Seconds(), Attributes: map[string]any{}}
		for _, a := range append(attrs, more...) {
			e.Attributes[string(a.Key)] = a.Value.AsInterface()
		}
		if err != nil {
			e.Error = err.Error()
		}
		w.tell(e)
		if span == nil {
			return
		}
		span.SetAttributes(more...)
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// tell adds a line to EventsFile. What cannot be written is no reason to fail what was done.
func (w *Workspace) tell(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	f, err := os.OpenFile(w.events, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Size() < maxEvents {
		_, _ = f.Write(append(line, '\n'))
	}
}

// keepEvents makes an artifact of EventsFile.
func (w *Workspace) keepEvents(ctx context.Context) error {
	if _, err := os.Lstat(w.events); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	store, err := artifacts.Open(w.origin)
	if err == nil {
		_, err = store.Add(ctx, artifacts.New{Type: artifacts.TypeTrace, File: w.events, Session: w.session, Description: "what was done in the workspace " + w.ID})
	}
	return err
}
