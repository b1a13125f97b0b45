package snapshot

// For the tests, which stand outside the package.
const (
	WalkChunk   = walkChunk
	WalkHandles = walkHandles
	ReadBuffer  = readBuffer
)

func Vouches(s *Snapshot, e *Entry) bool { return s.vouches(e) }
