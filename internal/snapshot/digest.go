package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/seed-2d964004/superqode"
)

// digestHeader begins every digest's input, so that a later format cannot
// collide with this one.
const digestHeader = "superqode snapshot digest 1\n"

// Digest returns the SHA-256 over the snapshot's entries. Its input is
// digestHeader and then, for every entry in order:
//
//	uvarint length of the path, the path's bytes
//	1 byte  kind (1 file, 2 link, 3 directory, 4 other)
//	uvarint permission bits (st_mode & 07777); 0 for links, whose bits mean nothing and differ between systems
//	uvarint size in bytes
//	uvarint length of the link target, the target's bytes
//	uvarint length of the content id, the id's raw bytes
//
// Every field is framed by its length, so two different lists of entries never
// give the same input. It is an error when the content of a file is not known.
func (s *Snapshot) Digest() (superqode.Digest, error) {
	h := sha256.New()
	b := append(make([]byte, 0, 4096), digestHeader...)
	for i := range s.Entries {
		e := &s.Entries[i]
		if e.ID.IsZero() && (e.Kind == File || e.Kind == Link) {
			return superqode.Digest{}, fmt.Errorf("digest: the content of %q is not known", e.Path)
		}
		b = appendBytes(b, string(e.Path))
		b = append(b, byte(e.Kind))
		perm := e.Perm
		if e.Kind == Link {
			perm = 0
		}
		b = binary.AppendUvarint(b, uint64(perm))
		b = binary.AppendUvarint(b, uint64(e.Size))
		b = appendBytes(b, e.Link)
		b = binary.AppendUvarint(b, uint64(len(e.ID.Bytes())))
		b = append(b, e.ID.Bytes()...)
		if len(b) > 2048 {
			h.Write(b) // hash.Hash never returns an error
			b = b[:0]
		}
	}
	h.Write(b)
	return superqode.NewDigest([sha256.Size]byte(h.Sum(nil))), nil
}

func appendBytes(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
