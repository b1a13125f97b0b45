package apply

// Made is what a session committed.
type Made struct {
	Head string   // its HEAD; "" if nothing is new
	Line []string // the new commits from head back along the first parents, the oldest first
	All  int      // number of new commits, including those on merged lines
	From string   // the parent of the first of line, "" for none
}

// ShortCommit is a commit's id in messages.
func ShortCommit(id string) string {
	if id == "" {
		return "an empty repository"
	}
	return id[:min(len(id), 12)]
}
