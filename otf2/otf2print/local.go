// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// LocalDefs writes the mapping tables and clock offsets of the selected locations. opts may be nil. Errors are as
// with Events.
func LocalDefs(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	out := bufio.NewWriterSize(w, 64<<10)
	out.WriteString("\n=== Per Location Definitions ===================================================\n\n")
	fmt.Fprintf(out, "%-27s %12s  Attributes\n", "Definition", "Location")
	out.WriteString(rule)
	var damage []error
	var b []byte
	for _, loc := range locations(a, opts) {
		maps, clocks, err := a.LocalDefs(loc)
		if err != nil {
			damage = append(damage, err)
		}
		if opts.NoMappings {
			maps = nil
		}
		if opts.NoClockOffsets {
			clocks = nil
		}
		for i := range maps {
			b = defHead(b[:0], "MAPPING_TABLE", uint64(loc))
			out.Write(appendMapping(b, &maps[i]))
		}
		for _, c := range clocks {
			b = defHead(b[:0], "CLOCK_OFFSET", uint64(loc))
			b = fmt.Appendf(b, "Time: %d, Offset: %+d, StdDev: ", c.Time, c.Offset)
			out.Write(append(appendFloat(b, c.StdDev), '\n'))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return errors.Join(damage...)
}

func defHead(b []byte, name string, id uint64) []byte {
	b = appendRight(append(appendPadded(b, name, 27), ' '), id, 12)
	return append(b, "  "...)
}

func appendMapping(b []byte, m *otf2.MappingTable) []byte {
	b = append(append(b, "Type: "...), m.Type.String()...)
	open, end := ", [", "]\n"
	if m.Local != nil {
		open, end = ", {", "}\n"
	}
	b = append(b, open...)
	for i, id := range m.Global {
		if i > 0 {
			b = append(b, ',')
		}
		if m.Local != nil {
			b = append(strconv.AppendUint(b, m.Local[i], 10), "=>"...)
		}
		if id == 1<<64-1 {
			b = append(b, "UNDEFINED"...)
		} else {
			b = strconv.AppendUint(b, id, 10)
		}
	}
	return append(b, end...)
}

// Anchor writes the content of the anchor file. opts may be nil.
func Anchor(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	out := bufio.NewWriter(w)
	out.WriteString("\nContent of OTF2 anchor file:\n")
	line := func(name string, value any) { opts.write(out, "%-30s %v\n", name, value) }
	n := a.Anchor
	line("Version", fmt.Sprintf("%d.%d.%d", n.Version[0], n.Version[1], n.Version[2]))
	line("Chunk size events", n.EventChunkSize)
	line("Chunk size definitions", n.DefChunkSize)
	line("File substrate", string(appendEnum(nil, "FileSubstrate", uint64(n.Substrate))))
	line("Compression", string(appendEnum(nil, "Compression", uint64(n.Compression))))
	line("Number of locations", n.Locations)
	line("Number of global definitions", n.GlobalDefs)
	line("Machine name", n.MachineName)
	line("Creator", n.Creator)
	line("Description", n.Description)
	line("Number of properties", len(n.Properties))
	for _, p := range n.Properties {
		line("Property name", strings.ToUpper(p.Name)) // as libotf2 reads them
		line("Property value", p.Value)
	}
	line("Trace identifier", strconv.FormatUint(n.TraceID, 16))
	line("Number of snapshots", n.Snapshots)
	line("Number of thumbnails", n.Thumbnails)
	return out.Flush()
}

// Thumbnails writes the headers of the archive's thumbnails, nothing if there are none. Thumbnails that cannot be
// read are left out and their errors returned joined.
func Thumbnails(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	if a.Anchor.Thumbnails == 0 {
		return nil
	}
	out := bufio.NewWriter(w)
	out.WriteString("\nThumbnail headers:\n")
	damage := a.EachThumbnail(func(i uint32, t *otf2.Thumbnail) error {
		n := len(t.Refs)
		opts.write(out, "%-16s %12d  Name: \"%s\", Description: \"%s\", Type: %s, Samples: %d, %d%s",
			"THUMBNAIL_HEADER", i,
			t.Name, t.Description, appendEnum(nil, "ThumbnailType", uint64(t.Type)), t.Declared, n,
			plural(" Metric", uint64(n)))
		for k, ref := range t.Refs {
			fmt.Fprintf(out, "%s%d", separator(k), ref)
		}
		out.WriteString("\n")
		return nil
	})
	if err := out.Flush(); err != nil {
		return err
	}
	return damage
}

// Markers writes the archive's markers in the form of the tool otf2-marker: each definition, then its markers.
func Markers(w io.Writer, a *otf2.Archive, opts *Options) error {
	opts = orDefault(opts)
	defs, markers, damage := a.Markers()
	out := bufio.NewWriter(w)
	for _, d := range defs {
		opts.write(out, "MARKER_DEF  Group: \"%s\", Category: \"%s\", Severity: %s\n", d.Group, d.Category,
			appendEnum(nil, "MarkerSeverity", uint64(d.Severity)))
		for _, m := range markers {
			if m.Marker != d.Self {
				continue
			}
			scope := string(appendEnum(nil, "MarkerScope", uint64(m.ScopeType)))
			if m.ScopeType != otf2.MarkerScopeGlobal {
				scope += ":" + strconv.FormatUint(m.Scope, 10)
			}
			opts.write(out, "MARKER      Time: %d, Duration %d, Scope: %s, Text: \"%s\"\n", m.Time, m.Duration, scope,
				m.Text)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return damage
}
