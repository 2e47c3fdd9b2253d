// SPDX-License-Identifier: Apache-2.0

package regular

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Whatever a text is, the name stays in its folder.
func TestFileName(t *testing.T) {
	for text, want := range map[string]string{
		"node-7.cluster": "node-7.cluster", "": "_", "a b": "a b", "..": "_.", "../../etc": "_._.._etc",
		".hidden": "_hidden", "a/../../b": "a_.._.._b",
		"\x1b[31mred\n": "_[31mred_", "a\x00b\x7f": "a_b_", "\xff\xfe": "\xff\xfe", "é": "é",
		strings.Repeat("x", 300): strings.Repeat("x", 200),
	} {
		got := FileName(text)
		testkit.Equal(t, got, want, "%q becomes", text)
		testkit.Check(t, filepath.Base(filepath.Join("/folder", got)) == got,
			"%q becomes %q, which leads elsewhere", text, got)
	}
}
