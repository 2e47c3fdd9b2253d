// SPDX-License-Identifier: Apache-2.0

package verdict_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/criticalpath"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
)

// The documentation shows the limits that are used.
func TestLimits(t *testing.T) {
	var table strings.Builder
	table.WriteString("\n| limit | at least | of what |\n|---|--:|---|\n")
	for _, l := range slices.Concat(verdict.Limits, criticalpath.Limits) {
		fmt.Fprintf(&table, "| `%s` | %g | %s |\n", l.Name, l.Value, l.Meaning)
	}
	golden.SectionMadeBy(t, "../../../docs/causes.md", "limits", "go test ./internal/analysis/verdict -update",
		table.String()+"\n")
}
