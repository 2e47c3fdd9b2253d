// SPDX-License-Identifier: Apache-2.0

package property

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Stretch is a range of operations that the members of a communicator recorded differently, as unify found. Comparing
// them would match different operations.
type Stretch struct {
	Comm        otf2.CommRef
	Function    string // "AllReduce", or "Send 0>3" for the messages from rank 0 to 3
	First, Last uint64 // ordinals, inclusive
	Name        string // of the communicator
	Detail      string // which ranks of the world recorded what
	Unsure      bool   // nothing may be missing: ranks' times contradict each other; not in properties
}

// String says which operations they are, and what is the matter with them.
func (s Stretch) String() string {
	which := fmt.Sprintf("%s %d", s.Function, s.First)
	if s.Last != s.First {
		which += fmt.Sprintf("-%d", s.Last)
	}
	return fmt.Sprintf("%s of %s: %s", which, cmp.Or(s.Name, "–"), s.Detail)
}

// Stretches reads these ranges from the archive's properties (Differ): comm 3 AllReduce 64-127 "name": …. unnamed
// is the number of further ranges, which the archive does not list.
func Stretches(a *otf2.Anchor) (all []Stretch, unnamed uint64) {
	ps := Read(a)
	for _, value := range ps.Numbered(Differ) {
		head, rest, _ := strings.Cut(value, " \"")
		words := strings.Fields(head)
		if len(words) < 4 || words[0] != "comm" {
			continue
		}
		var s Stretch
		comm, err := strconv.ParseUint(words[1], 10, 32)
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(words[len(words)-1], "%d-%d", &s.First, &s.Last); err != nil {
			continue
		}
		if quoted, err := strconv.QuotedPrefix("\"" + rest); err == nil {
			s.Name, _ = strconv.Unquote(quoted)
			s.Detail = strings.TrimPrefix(("\"" + rest)[len(quoted):], ": ")
		}
		s.Comm, s.Function = otf2.CommRef(comm), strings.Join(words[2:len(words)-1], " ")
		all = append(all, s)
	}
	n, _ := ps.Number(Differ)
	return all, n - min(n, uint64(len(all)))
}

// Excluded reports whether an operation lies in one of the stretches.
func Excluded(all []Stretch, comm otf2.CommRef, function string, ordinal uint64) bool {
	return slices.ContainsFunc(all, func(s Stretch) bool {
		return s.Comm == comm && s.Function == function && s.First <= ordinal && ordinal <= s.Last
	})
}
