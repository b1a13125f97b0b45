package workspace

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
)

// IOFS returns f as an fs.FS (and fs.ReadFileFS, fs.ReadDirFS, fs.StatFS, fs.SubFS), so
// that templates, HTTP servers, archives and fs.WalkDir read it. Every read is a call with
// ctx, and fails once that has ended. An open file holds its content as it was.
func IOFS(ctx context.Context, f FS) fs.FS { return ioFS{ctx, f} }

type ioFS struct {
	ctx context.Context // an fs.FS has no other way to take one
	fs  FS
}

// checked checks a name by the rules of io/fs, and gives an error its form.
func checked[T any](i ioFS, op, name string, do func(context.Context, string) (T, error)) (v T, err error) {
	if err = fs.ErrInvalid; fs.ValidPath(name) {
		v, err = do(i.ctx, name)
	}
	if err != nil {
		err = &fs.PathError{Op: op, Path: name, Err: err}
	}
	return v, err
}

// Open implements fs.FS.
func (i ioFS) Open(name string) (fs.File, error) {
	info, err := i.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		list, err := i.ReadDir(name)
		return &openDir{openFile{info: info, name: name}, list}, err
	}
	data, err := i.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &openFile{info: info, name: name, Reader: bytes.NewReader(data)}, nil
}

// ReadFile implements fs.ReadFileFS.
func (i ioFS) ReadFile(name string) ([]byte, error) { return checked(i, "read", name, i.fs.Read) }

// ReadDir implements fs.ReadDirFS.
func (i ioFS) ReadDir(name string) ([]fs.DirEntry, error) {
	return checked(i, "readdir", name, i.fs.List)
}

// Stat implements fs.StatFS.
func (i ioFS) Stat(name string) (fs.FileInfo, error) { return checked(i, "stat", name, i.fs.Stat) }

// Sub implements fs.SubFS: the part cannot be left by a link either.
func (i ioFS) Sub(dir string) (fs.FS, error) {
	return checked(i, "sub", dir, func(ctx context.Context, dir string) (fs.FS, error) { return ioFS{ctx, Sub(i.fs, dir)}, nil })
}

type openFile struct {
	*bytes.Reader
	info   fs.FileInfo
	name   string
	closed bool
}

// Stat implements fs.File.
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read implements fs.File.
func (f *openFile) Read(b []byte) (int, error) {
	err := errors.New("is a directory")
	switch {
	case f.closed:
		err = fs.ErrClosed
	case f.Reader != nil:
		return f.Reader.Read(b)
	}
	return 0, &fs.PathError{Op: "read", Path: f.name, Err: err}
}

// Close implements fs.File.
func (f *openFile) Close() error {
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	return nil
}

type openDir struct {
	openFile
	left []fs.DirEntry
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.left)
	} else if len(d.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.left))
	list := d.left[:n:n]
	d.left = d.left[n:]
	return list, nil
}
