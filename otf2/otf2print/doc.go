// SPDX-License-Identifier: Apache-2.0

// Package otf2print writes the content of OTF2 archives as text, one record per line, in the form of the tool
// otf2-print 3.0 (records that later versions added: in the form of 3.2), so that the two can be compared; or in that
// of 3.2, see Options.As.
//
// Each function writes one section; otf2-print puts [Title] before the first. Names that the definitions lack are
// shown as INVALID <id>, as there.
package otf2print

import (
	"fmt"
	"io"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Title begins the output of otf2-print.
const Title = "\n=== OTF2-PRINT ===\n"

// Options choose what is written. The zero value chooses all.
type Options struct {
	Locations []otf2.LocationRef // nil: all
	From, To  otf2.Timestamp     // range of event times, To 0: no limit

	Relative bool // times of events and snapshots count from the global offset of the clock properties
	Unwind   bool // each calling context event is followed by its context and the callers

	NoMappings     bool // LocalDefs leaves out mapping tables
	NoClockOffsets bool // LocalDefs leaves out clock offsets

	// Printable writes texts of the archive without what a terminal would act upon: control characters, for example, as
	// "\x1b". Otherwise they are written as they are, as otf2-print does.
	Printable bool

	// As is the version whose otf2-print has the text: 3.0 (the zero value), or from 3.2 on, which says UNDEFINED for
	// numbers that are.
	As otf2.Version

	Zone *time.Location // for the date of the clock properties; nil: the local one
}

// write is fmt.Fprintf, or printable.Fprintf.
func (o *Options) write(w io.Writer, format string, args ...any) {
	if o.Printable {
		printable.Fprintf(w, format, args...)
	} else {
		_, _ = fmt.Fprintf(w, format, args...) // the flush of the writer returns its errors
	}
}

const rule = "--------------------------------------------------------------------------------\n"
