// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/regular"
)

// AMD returns the architectures of the AMD GPUs known to the machine's kernel driver, such as "gfx942", each once; nil
// if there are none or they are unknown. root is prepended to system paths; "" is the machine itself.
func AMD(root string) (architectures []string) {
	for _, f := range regular.Matches(root, "/sys/class/kfd/kfd/topology/nodes/*/properties") {
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
