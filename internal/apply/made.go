package apply

// Made is what a session committed.
type Made struct {
	Head string   // what its HEAD is; "" when nothing is new
	Line []string // the new commits from head back along the first parents, the oldest first
	All  int      // new commits, those on merged lines among them
	From string   // the commit that the first of line stands on, "" for none
}

// ShortCommit is a commit as messages have it.
func ShortCommit(id string) string {
	if id == "" {
		return "an empty repository"
	}
	return id[:min(len(id), 12)]
}
