// SPDX-License-Identifier: Apache-2.0

package hidden

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
)

// The page has the table (go test ./internal/hidden -run TestHazardsPage -update).
func TestHazardsPage(t *testing.T) {
	golden.Section(t, "../../docs/hazards.md", "hidden", markdown())
}

// markdown is the table for the documentation.
func markdown() string {
	var b strings.Builder
	b.WriteString("| what is not reported | by | why, and what is there instead | what helps |\n|---|---|---|---|\n")
	for i := range table {
		r := &table[i]
		cure := r.Cure
		if cure == "" {
			cure = "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.What, r.where(), r.Why, cure)
	}
	return b.String()
}

// where words the libraries and releases of a row.
func (r *row) where() string {
	library := r.library
	if library == "" {
		library = "NCCL, RCCL"
	}
	if r.from == 0 {
		return library
	}
	release := fmt.Sprintf("%d.%d", r.from/10000, r.from/100%100)
	if patch := r.from % 100; patch != 0 {
		release += fmt.Sprintf(".%d", patch)
	}
	return library + " from " + release + " on"
}
