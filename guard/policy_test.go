package guard

import "testing"

// TestHarmless holds that each operation of the list is one that the table denies, and
// that none of them is called a loss there.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for _, name := range harmless {
		n := 0
		for _, row := range operationTable {
			if !covers(name, string(row.Name)) {
				continue
			}
			n++
			if row.Default != Deny || row.Why == whyLoss || row.Why == whyDelete || row.Why == whyRemote {
				t.Errorf("%s: %s, for %s", row.Name, row.Default, row.Why)
			}
		}
		if n == 0 {
			t.Errorf("%s is no operation", name)
		}
	}
}
