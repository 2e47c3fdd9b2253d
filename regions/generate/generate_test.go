// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The generated files are what the tables say today.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	for _, f := range files {
		have := testkit.Value(os.ReadFile(filepath.Join("..", f.path)))(t)
		want := testkit.Value(f.text())(t)
		testkit.Equal(t, cmp.Diff(string(have), string(want)), "",
			"%s is not what regions/generate says (make generate):\n", f.path)
	}
}

// Names and keys are unique, for readers of archives find values by them.
func TestKeysAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	check := func(table, key string) {
		testkit.Check(t, key != "" && !seen[table+key], "%s: %q stands there twice, or is empty", table, key)
		seen[table+key] = true
	}
	for _, a := range attributes {
		check("attributes", a.name)
	}
	for _, c := range oddities {
		check("oddities", c.key)
	}
	for _, c := range counts {
		check("counts", c.key)
	}
}
