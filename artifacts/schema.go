package artifacts

import (
	"embed"
	"fmt"

	"github.com/seed-2d964004/superqode"
)

//go:embed schema/*.schema.json
var schemas embed.FS

// SchemaNames lists the published JSON Schemas: "result" for what `run --json`
// prints and "qr" for qr-*.json.
func SchemaNames() []string { return []string{"result", "qr"} }

// Schema returns a published JSON Schema (draft 2020-12). The error wraps
// superqode.ErrNotFound for an unknown name.
func Schema(name string) ([]byte, error) {
	b, err := schemas.ReadFile("schema/" + name + ".schema.json")
	if err != nil {
		return nil, fmt.Errorf("%w: schema %q (one of %v)", superqode.ErrNotFound, name, SchemaNames())
	}
	return b, nil
}
