package snapshot

import (
	"crypto/sha1" //nolint:gosec // git's object format, not a security boundary
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// Format is the hash that a repository names its objects with.
type Format uint8

// The formats of git 2.28 and newer.
const (
	SHA1 Format = iota + 1
	SHA256
)

// ParseFormat reads git's name of an object format.
func ParseFormat(s string) (Format, error) {
	switch s {
	case "sha1":
		return SHA1, nil
	case "sha256":
		return SHA256, nil
	}
	return 0, fmt.Errorf("unknown object format %q", s)
}

// String returns git's name of the format.
func (f Format) String() string {
	switch f {
	case SHA1:
		return "sha1"
	case SHA256:
		return "sha256"
	}
	return "invalid"
}

// Size returns the length of an id in bytes: 20 or 32.
func (f Format) Size() int {
	if f == SHA256 {
		return sha256.Size
	}
	return sha1.Size
}

// NewBlobHash starts the hash of a blob of size bytes: write exactly that many,
// then take the sum with IDFrom.
func (f Format) NewBlobHash(size int64) hash.Hash {
	var h hash.Hash
	if f == SHA256 {
		h = sha256.New()
	} else {
		h = sha1.New()
	}
	b := append(strconv.AppendInt([]byte("blob "), size, 10), 0)
	h.Write(b) // hash.Hash never returns an error
	return h
}

// HashBlob returns the content id of data.
func (f Format) HashBlob(data []byte) ID {
	h := f.NewBlobHash(int64(len(data)))
	h.Write(data)
	return IDFrom(h.Sum(nil))
}

// ID is a content id: the git blob id of raw bytes. The zero value means "not
// known".
type ID struct {
	n   uint8
	sum [32]byte
}

// IDFrom wraps a hash sum of 20 or 32 bytes; any other length gives the zero ID.
func IDFrom(sum []byte) ID {
	var id ID
	if len(sum) == sha1.Size || len(sum) == sha256.Size {
		id.n = uint8(copy(id.sum[:], sum))
	}
	return id
}

// unlikePrefix begins the ids that are no hash. That of a file has a chance of 2⁻⁶⁴.
const unlikePrefix = 8 // bytes, all zero

// unlike makes up the id of a file that is not read.
func (f Format) unlike(st Stat) ID {
	h := f.NewHash()
	fmt.Fprintf(h, "not read: %+v", st)
	id := IDFrom(h.Sum(nil))
	clear(id.sum[:unlikePrefix])
	return id
}

// isUnlike reports whether the id was made up.
func (id ID) isUnlike() bool {
	return !id.IsZero() && [unlikePrefix]byte(id.sum[:]) == [unlikePrefix]byte{}
}

// ParseID reads 40 or 64 hex digits.
func ParseID(s string) (ID, error) {
	b, err := hex.DecodeString(s)
	if id := IDFrom(b); err == nil && !id.IsZero() {
		return id, nil
	}
	return ID{}, fmt.Errorf("%q is not an object id", s)
}

// IsZero reports whether the id is not known.
func (id ID) IsZero() bool { return id.n == 0 }

// Bytes returns the raw sum.
func (id ID) Bytes() []byte { return id.sum[:id.n] }

// String returns the id in hex.
func (id ID) String() string { return hex.EncodeToString(id.Bytes()) }

// NewHash starts a hash without an object header.
func (f Format) NewHash() hash.Hash {
	if f == SHA256 {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // as above
}
