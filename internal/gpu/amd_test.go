// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestAMD(t *testing.T) {
	root := t.TempDir()
	got := AMD(root)
	testkit.Check(t, got == nil, "of no driver: %v", got)
	for i, version := range []int{0, 90402, 90402, 90010, 90500} {
		dir := filepath.Join(root, "sys/class/kfd/kfd/topology/nodes", fmt.Sprint(i))
		testkit.Must(t, os.MkdirAll(dir, 0o777))
		testkit.Write(t, filepath.Join(dir, "properties"),
			fmt.Appendf(nil, "simd_count 0\ngfx_target_version %d\nvendor_id 4098\n", version))
	}
	testkit.Same(t, []string{"gfx90a", "gfx942", "gfx950"}, AMD(root))
}
