// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// AMD tells the architectures of the AMD GPUs that a machine's kernel driver knows, as "gfx942", each once. root is put before the
// path of the system; "" is the machine itself. None, if there are none or nothing tells.
func AMD(root string) (architectures []string) {
	files, _ := filepath.Glob(filepath.Join(root, "/sys/class/kfd/kfd/topology/nodes/*/properties"))
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.Atoi(value)
			if name != "gfx_target_version" || err != nil || n == 0 { // 0: a processor
				continue
			}
			if a := fmt.Sprintf("gfx%d%d%x", n/10000, n/100%100, n%100); !slices.Contains(architectures, a) {
				architectures = append(architectures, a)
			}
		}
	}
	slices.Sort(architectures)
	return architectures
}
