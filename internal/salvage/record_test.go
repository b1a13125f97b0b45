package salvage

import (
	"encoding/json"
	"testing"
)

// What could not be salvaged is only shown: no path of it makes a record unreadable.
func TestLeftOutJSON(t *testing.T) {
	t.Parallel()
	for _, l := range []LeftOut{{"a/b", "why"}, {"", "why"}, {"git-dir/", "of an older superqode"}, {"odd\xff", "bytes"}} {
		var back LeftOut
		b, err := json.Marshal(l)
		if err != nil || json.Unmarshal(b, &back) != nil || back != l {
			t.Errorf("%q is %s, %v, and then %q", l, b, err, back)
		}
	}
	if got := below("git-dir", ""); got != "git-dir" {
		t.Errorf("the part's own folder is %q", got)
	}
}
