// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ncclotf2/otf2"
	"ncclotf2/otf2/otf2print"
)

type printOptions struct {
	all, anchor, thumbnails, definitions, mappings, offsets, markers bool

	locations []string
	from, to  uint64
}

func printCommand() *cobra.Command {
	var o printOptions
	cmd := &cobra.Command{
		Use:   "print ARCHIVE|DIR",
		Short: "Print an archive as text, one record per line",
		Long: `Prints records in the form of the tool otf2-print, with its options: without any the events of all
locations in order of time.`,
		Example: `  nccl-otf2 print exp1
  nccl-otf2 print -G exp1/traces.otf2
  nccl-otf2 print -L 4294967296 --from 1000000 --to 2000000 exp1`,
		Args: exactly("an experiment directory or archive"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return printArchive(cmd.OutOrStdout(), &o, args[0])
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&o.all, "show-all", "A", false, "the anchor file, global definitions and events")
	fl.BoolVarP(&o.definitions, "show-global-defs", "G", false, "global definitions")
	fl.BoolVarP(&o.anchor, "show-info", "I", false, "the content of the anchor file")
	fl.BoolVarP(&o.thumbnails, "show-thumbnails", "T", false, "headers of thumbnails")
	fl.BoolVarP(&o.mappings, "show-mappings", "M", false, "mapping tables of locations")
	fl.BoolVarP(&o.offsets, "show-clock-offsets", "C", false, "clock offsets of locations")
	fl.BoolVar(&o.markers, "show-markers", false, "markers, in the form of otf2-marker")
	fl.StringArrayVarP(&o.locations, "location", "L", nil, "only the location with this id (repeatable)")
	fl.Uint64Var(&o.from, "from", 0, "only events from this time stamp on")
	fl.Uint64Var(&o.to, "to", 0, "only events up to this time stamp (0: all)")
	return cmd
}

func printArchive(w io.Writer, o *printOptions, arg string) error {
	opts := otf2print.Options{
		From: otf2.Timestamp(o.from), To: otf2.Timestamp(o.to), NoMappings: !o.mappings, NoClockOffsets: !o.offsets,
	}
	for _, text := range o.locations {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return usagef("--location %s is no location id", text)
		}
		opts.Locations = append(opts.Locations, otf2.LocationRef(id))
	}
	a, damage := openArchive(arg)
	if a == nil {
		return damage
	}
	defer a.Close()
	for _, id := range opts.Locations {
		if a.Defs.Location(id) == nil {
			return fmt.Errorf("%s has no location %d: see them with print -G", arg, id)
		}
	}

	events := o.all || !(o.definitions || o.anchor || o.thumbnails || o.mappings || o.offsets || o.markers)
	sections := []struct {
		on    bool
		print func() error
	}{
		{o.anchor || o.all, func() error { return otf2print.Anchor(w, a) }},
		{o.thumbnails || o.all, func() error { return otf2print.Thumbnails(w, a) }},
		{o.definitions || o.all, func() error { return otf2print.Definitions(w, a, &opts) }},
		{o.mappings || o.offsets, func() error { return otf2print.LocalDefs(w, a, &opts) }},
		{events, func() error { return otf2print.Events(w, a, &opts) }},
		{events && a.Anchor.Snapshots > 0, func() error { return otf2print.Snapshots(w, a, &opts) }},
		{o.markers, func() error { return otf2print.Markers(w, a) }},
	}
	if _, err := io.WriteString(w, otf2print.Title); err != nil {
		return readerGone(err)
	}
	for _, s := range sections {
		if !s.on {
			continue
		}
		err := s.print()
		if errors.Is(err, unix.EPIPE) {
			return readerGone(err)
		}
		damage = errors.Join(damage, err)
	}
	return damage
}

// readerGone turns the end of whoever reads the output (head, less) into a quiet end.
func readerGone(err error) error {
	if errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// openArchive opens the archive that a path argument means. If its definitions are damaged it gives
// what could be read, and an error.
func openArchive(arg string) (*otf2.Archive, error) {
	path, err := anchorPath(arg)
	if err != nil {
		return nil, err
	}
	a, err := otf2.Open(path, nil)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: the archive is not complete; make it again with `nccl-otf2 unify`", err)
	case errors.Is(err, otf2.ErrNotSupported):
		err = fmt.Errorf("%w: this tool does not read such archives", err)
	}
	return a, err
}
