// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/keyed"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// MPI calls carry no ordinals: the reader counts the calls of each function on a communicator. A call that the archive
// lacks on one member would shift the ordinals of its later calls. property.Missing lists missing calls by member, so
// that they are counted too.

// Missing lists the ordinals, ascending, of calls of a function on a communicator that the archive lacks on a location.
type Missing struct {
	Location otf2.LocationRef
	Comm     otf2.CommRef
	Function string
	Ordinals []uint64
}

// DefineMissing writes the lists into the definitions, from which AllCommunicators reads them.
func DefineMissing(defs *otf2.Definitions, all []Missing) {
	text := func(s string) otf2.StringRef {
		ref := otf2.StringRef(0)
		for _, d := range defs.Strings {
			ref = max(ref, d.Self+1)
		}
		defs.Strings = append(defs.Strings, otf2.String{Self: ref, Text: s})
		return ref
	}
	key := text(property.Missing.Key())
	for _, m := range all {
		value := fmt.Sprintf("%d %s", m.Comm, m.Function)
		for _, n := range m.Ordinals {
			value += fmt.Sprintf(" %d", n)
		}
		defs.LocationProperties = append(defs.LocationProperties, otf2.LocationProperty{
			Location: m.Location, Name: key, Type: otf2.TypeString, Value: otf2.Value(text(value)),
		})
	}
	defs.Reindex()
}

// readMissing sets the missing calls of communicators from the definitions.
func readMissing(defs *otf2.Definitions, comms map[otf2.CommRef]*Communicator) {
	for _, p := range defs.LocationProperties {
		if defs.String(p.Name) != property.Missing.Key() {
			continue
		}
		var ref otf2.CommRef
		var function string
		r := strings.NewReader(defs.String(otf2.StringRef(p.Value)))
		if n, _ := fmt.Fscan(r, &ref, &function); n < 2 || comms[ref] == nil {
			continue
		}
		var ordinals []uint64
		for n := uint64(0); ; ordinals = append(ordinals, n) {
			if got, _ := fmt.Fscan(r, &n); got < 1 {
				break
			}
		}
		c := comms[ref]
		if c.missing == nil {
			c.missing = make(map[otf2.LocationRef]map[string][]uint64)
		}
		keyed.Map(c.missing, p.Location)[function] = ordinals
	}
}

// Lacks reports whether the archive lacks a call on a location.
func (c *Communicator) Lacks(l otf2.LocationRef, function string, ordinal uint64) bool {
	_, lacks := slices.BinarySearch(c.missing[l][function], ordinal)
	return lacks
}
