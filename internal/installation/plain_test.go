package installation

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/seed-2d964004/superqode"
)

// TestPlainInstallation holds that the quick way reads what encoding/json reads.
func TestPlainInstallation(t *testing.T) {
	t.Parallel()
	full := Record{SchemaVersion: 1, InstalledAt: time.Unix(1700000000, 0).UTC(), Version: "v1", Method: MethodFolder, Done: true, Strict: true,
		Allow: []string{"commit"}, Deny: []string{}, Helper: "/usr/bin/superqode-shim", MadeFolder: true}
	odd, withConfig := full, full
	odd.Helper = superqode.HostPath("/a\xff")
	withConfig.Config = &ConfigEdit{File: "/f", Former: "/.husky", Value: ".husky", Own: "/o", Scope: "local", Time: time.Unix(1700000000, 7).UTC()}
	for name, tt := range map[string]struct {
		in    Record
		plain bool
	}{"full": {full, true}, "empty": {Record{}, true}, "not UTF-8": {odd, false}, "config": {withConfig, true}} {
		data, err := json.MarshalIndent(tt.in, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		got := plain(data)
		if (got != nil) != tt.plain {
			t.Errorf("%s: read plainly %v, want %v", name, got != nil, tt.plain)
		}
		if got != nil && !reflect.DeepEqual(*got, tt.in) {
			t.Errorf("%s: %+v, want %+v", name, *got, tt.in)
		}
	}
}
