// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAMD(t *testing.T) {
	root := t.TempDir()
	if got := AMD(root); got != nil {
		t.Errorf("of no driver: %v", got)
	}
	for i, version := range []int{0, 90402, 90402, 90010, 90500} {
		dir := filepath.Join(root, "sys/class/kfd/kfd/topology/nodes", fmt.Sprint(i))
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "properties"), fmt.Appendf(nil, "simd_count 0\ngfx_target_version %d\nvendor_id 4098\n", version), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]string{"gfx90a", "gfx942", "gfx950"}, AMD(root)); d != "" {
		t.Error(d)
	}
}
