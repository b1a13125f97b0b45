package report

import (
	"context"
	"errors"
	"io"
	"reflect"

	"github.com/seed-2d964004/superqode"
	"github.com/seed-2d964004/superqode/artifacts"
	"github.com/seed-2d964004/superqode/internal/atomicfile"
	"github.com/seed-2d964004/superqode/internal/redact"
)

// Masked returns a copy of the report without secrets. Paths and ids stay:
// without them nothing in the report could be found.
func Masked(rep artifacts.Report, r *redact.Redactor) artifacts.Report {
	if r == nil {
		return rep
	}
	rep.Findings, rep.Suppressed = fixed(rep.Findings), fixed(rep.Suppressed)
	maskStrings(reflect.ValueOf(&rep).Elem(), r)
	return rep
}

// MaskedFindings returns copies of findings without secrets.
func MaskedFindings(list []artifacts.Finding, r *redact.Redactor) []artifacts.Finding {
	if r != nil {
		list = fixed(list)
		maskStrings(reflect.ValueOf(&list).Elem(), r)
	}
	return list
}

// fixed returns copies of findings whose fingerprints stay when texts are masked.
func fixed(list []artifacts.Finding) []artifacts.Finding {
	out := make([]artifacts.Finding, len(list))
	for i, f := range list {
		out[i] = f.WithFingerprint()
	}
	return out
}

// maskStrings masks every exported string below v that is no path. Slices and pointers are copied
// before they are changed: the caller's report is not ours.
func maskStrings(v reflect.Value, r *redact.Redactor) {
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); v.CanSet() && s != "" && v.Type() != reflect.TypeFor[superqode.RelPath]() {
			if m := r.Text(s); m != s {
				v.SetString(m)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				maskStrings(v.Field(i), r)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 || !v.CanSet() || v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		v.Set(list)
		for i := range v.Len() {
			maskStrings(v.Index(i), r)
		}
	case reflect.Pointer:
		if !v.IsNil() && v.CanSet() {
			one := reflect.New(v.Type().Elem())
			one.Elem().Set(v.Elem())
			v.Set(one)
			maskStrings(one.Elem(), r)
		}
	}
}

// ShowPatch names the secrets in a session's patch, path, line and rule of each. The
// patch itself is never changed, since it would not apply any more: where it holds
// some, a copy without them is kept at ShownPatch.
func ShowPatch(ctx context.Context, dir, file string, r *redact.Redactor) (found []string, err error) {
	if r == nil {
		return nil, nil
	}
	f, err := atomicfile.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if found, err = r.InPatch(ctx, f); err != nil || len(found) == 0 {
		return found, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return found, err
	}
	shown := ShownPatch(dir)
	return found, errors.Join(atomicfile.ClearWay(shown),
		atomicfile.WriteFunc(shown, 0o600, func(w io.Writer) error { return r.Patch(w, f) }))
}
