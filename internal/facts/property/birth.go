// SPDX-License-Identifier: Apache-2.0

package property

import (
	"fmt"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Birth is how a communicator came from its parent (otf2.Comm.Parent).
type Birth struct {
	Comm   otf2.CommRef
	Parent otf2.CommRef
	// Split is 1, 2, … for the parent's splits in order, 0 for a shrink.
	Split uint32
	Color uint32 // of a split
}

// String is the value of a property: "comm 5 of 2 split 1 color 0", "comm 6 of 2 shrink".
func (b Birth) String() string { return fmt.Sprintf("comm %d of %d %s", b.Comm, b.Parent, b.Words()) }

// Words are how it came to be: "split 1 color 0", "shrink".
func (b Birth) Words() string {
	if b.Split == 0 {
		return "shrink"
	}
	return fmt.Sprintf("split %d color %d", b.Split, b.Color)
}

// Births reads how the communicators of an archive came from their parents.
func Births(a *otf2.Anchor) map[otf2.CommRef]Birth {
	all := make(map[otf2.CommRef]Birth)
	for _, value := range Read(a).Numbered(Parents) {
		var b Birth
		head, how, _ := strings.Cut(value, " s")
		if n, err := fmt.Sscanf(head, "comm %d of %d", &b.Comm, &b.Parent); n != 2 || err != nil {
			continue
		}
		if n, err := fmt.Sscanf(how, "plit %d color %d", &b.Split, &b.Color); how == "hrink" || n == 2 && err == nil {
			all[b.Comm] = b
		}
	}
	return all
}
