// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// Rows are distinguished by their names, as package regions gives them: an archive does not state otherwise what a
// location is for. A process with several ranks of a communicator has the rank in front of the suffix.
var (
	channelRow = regexp.MustCompile(regions.ChannelRow + `(\d+)$`)
	rankRow    = regexp.MustCompile(regions.RankRow + `(\d+)$`)
	eventRow   = regexp.MustCompile(regions.EventRow + `[A-Z]\w*( ch \d+)?( \w+)? \d+$`)
	ownerRank  = regexp.MustCompile(` r(\d+)$`)
)

// Rows are classified by the names that package regions gives them: an archive has no other record of the purpose of a
// location. If a process has several ranks of a communicator, the rank precedes the suffix.
type Rows struct {
	defs  *otf2.Definitions
	ranks map[otf2.LocationRef]bool // of communicators
}

// RowsOf builds the table of an archive with these communicators.
func RowsOf(defs *otf2.Definitions, comms map[otf2.CommRef]*membership.Communicator) *Rows {
	r := &Rows{defs: defs, ranks: make(map[otf2.LocationRef]bool)}
	for _, c := range comms {
		for _, l := range c.Members {
			r.ranks[l] = true
		}
	}
	return r
}

// Kind returns the kind of a location; locations of other tools and undefined ones are threads.
func (r *Rows) Kind(l otf2.LocationRef) description.LocationKind {
	d := r.defs.Location(l)
	if d == nil {
		return description.KindThread
	}
	name, stream := r.defs.String(d.Name), d.Type == otf2.LocationTypeAcceleratorStream
	switch {
	case d.Type == otf2.LocationTypeMetric:
		return description.KindGPUMetrics
	case stream && r.ranks[l]:
		return description.KindRank
	case stream && channelRow.MatchString(name):
		return description.KindChannel
	case stream && rankRow.MatchString(name):
		return description.KindRank
	case stream:
		return description.KindStream
	case eventRow.MatchString(name):
		return description.KindEvent
	case strings.HasPrefix(name, regions.EnqueueRow):
		return description.KindEnqueue
	case strings.HasSuffix(name, regions.SendRow), strings.HasPrefix(name, regions.PXNRow):
		return description.KindNetSend
	case strings.HasSuffix(name, regions.RecvRow):
		return description.KindNetRecv
	}
	return description.KindThread
}

// IsPXN reports whether a row shows what its process sent for ranks of other processes.
func IsPXN(name string) bool { return strings.HasPrefix(name, regions.PXNRow) }

// Label splits the name of a row of a communicator rank, or beside it, into the communicator's label and the rank
// ("" without one).
func Label(name string) (label, rank string) {
	label = strings.TrimPrefix(name, regions.EnqueueRow)
	if m := rankRow.FindStringSubmatch(label); m != nil {
		return strings.TrimSuffix(label, m[0]), m[1]
	}
	label = strings.TrimSuffix(strings.TrimSuffix(label, regions.SendRow), regions.RecvRow)
	if m := channelRow.FindString(label); m != "" {
		return strings.TrimSuffix(label, m), ""
	}
	if m := ownerRank.FindStringSubmatch(label); m != nil {
		return strings.TrimSuffix(label, m[0]), m[1]
	}
	return label, ""
}

// Channel returns the channel of a channel's row.
func Channel(name string) (channel int, ok bool) {
	m := channelRow.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	channel, err := strconv.Atoi(m[1])
	return channel, err == nil
}

// AddOwner returns the name of a row for one of several ranks that a process has on a communicator. name is its name
// for a single rank.
func AddOwner(name string, rank int) string {
	owner := " r" + strconv.Itoa(rank)
	for _, suffix := range []string{regions.SendRow, regions.RecvRow} {
		if label, ok := strings.CutSuffix(name, suffix); ok {
			return label + owner + suffix
		}
	}
	return name + owner
}
