// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/cube/cubeprint"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/profile/cubex"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

type printOptions struct {
	all, anchor, thumbnails, definitions, mappings, offsets, markers bool
	silent, unwind, cube                                             bool

	locations  []string
	from, to   uint64
	time       string // both limits, joined by a comma
	args       []string
	timestamps choice
	form       choice
}

// printForms are the OTF2 versions whose otf2-print output differs.
var printForms = map[string]otf2.Version{"3.0": 0x300, "3.2": 0x302}

func printCommand() *cobra.Command {
	o := printOptions{
		timestamps: choice{"plain", []string{"plain", "offset"}}, form: choice{"3.0", []string{"3.0", "3.2"}},
	}
	cmd := &cobra.Command{
		Use:   "print ARCHIVE|DIR, print --cube PROFILE",
		Short: "Print an archive as text, one record per line",
		Long: `Prints records in the format of otf2-print, and takes its options; without any, it prints the events of all locations
in order of time. The options --step, --system-tree, -Werror and --debug do not exist; nccl-otf2 check finds what
-Werror would refuse.

The text is that of otf2-print 3.0, or with --form 3.2 that of 3.2, which prints UNDEFINED for undefined numbers. Names
are written as they are, but on a terminal, control characters in them are shown as "\x1b" and the like.

With --cube, the argument is a CUBE profile (*.cubex), written by any program.`,
		Example: `  nccl-otf2 print exp1
  nccl-otf2 print -G exp1/traces.otf2
  nccl-otf2 print -L 4294967296 --time 1000000 2000000 exp1
  nccl-otf2 print --cube exp1/profile.cubex`,
		Args: func(cmd *cobra.Command, args []string) error {
			o.args = o.joinTimeLimits(args)
			return exactArgs("an experiment directory or archive")(cmd, o.args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.parseTime(); err != nil {
				return err
			}
			if o.cube {
				return printCube(cmd, o.args[0])
			}
			return printArchive(cmd.OutOrStdout(), &o, o.args[0])
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
	fl.StringVar(&o.time, "time", "", "only events within these times: --time MIN MAX, or --time MIN,MAX")
	fl.Uint64Var(&o.from, "from", 0, "only events from this time stamp on")
	fl.Uint64Var(&o.to, "to", 0, "only events up to this time stamp (0: all)")
	addChoice(cmd, &o.timestamps, "timestamps", "times as they are, or from the global offset on")
	addChoice(cmd, &o.form, "form", "print the text as otf2-print of this OTF2 version does")
	fl.BoolVar(&o.silent, "silent", false, "read all events without printing them")
	fl.BoolVar(&o.unwind, "unwind-calling-context", false, "callers behind each calling context event")
	fl.BoolVar(&o.cube, "cube", false, "print a CUBE profile instead: definitions and stored values")
	return cmd
}

// printCube prints a profile.
func printCube(cmd *cobra.Command, path string) error {
	var other error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "cube" {
			other = usagef("--%s is for archives, not for profiles (--cube)", f.Name)
		}
	})
	if other != nil {
		return other
	}
	if isDir(path) {
		path = cmp.Or(findNewest(path, cubex.FileName), filepath.Join(path, cubex.FileName))
	}
	p, err := cube.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s does not exist: make a profile with `nccl-otf2 profile`", path)
	} else if err != nil {
		return err
	}
	defer p.Close()
	return ignoreClosedPipe(cubeprint.Print(cmd.OutOrStdout(), p, nil))
}

// joinTimeLimits adds the second number of --time MIN MAX to the flag, and returns the arguments without it. Flags of
// one value leave it among them: it is the first argument if that is a number, else the last.
func (o *printOptions) joinTimeLimits(args []string) []string {
	if o.time == "" || strings.Contains(o.time, ",") {
		return args
	}
	for _, i := range []int{0, len(args) - 1} {
		if i < 0 || i >= len(args) {
			continue
		}
		if _, err := strconv.ParseUint(args[i], 10, 64); err == nil {
			o.time += "," + args[i]
			return slices.Delete(slices.Clone(args), i, i+1)
		}
	}
	return args
}

// parseTime parses the limits of --time.
func (o *printOptions) parseTime() error {
	if o.time == "" {
		return nil
	}
	low, high, both := strings.Cut(o.time, ",")
	from, err := strconv.ParseUint(low, 10, 64)
	to, err2 := strconv.ParseUint(high, 10, 64)
	if !both || err != nil || err2 != nil || from > to {
		return usagef("--time needs two times, the first not after the second: --time MIN MAX")
	}
	o.from, o.to = from, to
	return nil
}

func printArchive(w io.Writer, o *printOptions, arg string) error {
	opts := otf2print.Options{
		From: otf2.Timestamp(o.from), To: otf2.Timestamp(o.to), NoMappings: !o.mappings, NoClockOffsets: !o.offsets,
		Relative: o.timestamps.value == "offset", Unwind: o.unwind, As: printForms[o.form.value],
		Printable: isTerminal(w),
	}
	for _, text := range o.locations {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return usagef("--location %s is not a location id", text)
		}
		opts.Locations = append(opts.Locations, otf2.LocationRef(id))
	}
	a, damage := openArchiveWith(arg, otf2.Open, otf2.ReadOptions{})
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
	if _, err := io.WriteString(w, otf2print.Title); err != nil {
		return ignoreClosedPipe(err)
	}
	printEvents := otf2print.Events
	if o.silent {
		printEvents = readEvents
	}
	some := len(a.Defs.Locations) > 0 // without any, otf2-print stops behind the definitions, too
	for _, s := range []struct {
		on    bool
		print func(io.Writer, *otf2.Archive, *otf2print.Options) error
	}{
		{o.anchor || o.all, otf2print.Anchor},
		{o.thumbnails || o.all, otf2print.Thumbnails},
		{o.definitions || o.all, otf2print.Definitions},
		{(o.mappings || o.offsets) && some, otf2print.LocalDefs},
		{events && some, printEvents},
		{events && some && a.Anchor.Snapshots > 0 && !o.silent, otf2print.Snapshots},
		{o.markers && some, otf2print.Markers},
	} {
		if !s.on {
			continue
		}
		err := s.print(w, a, &opts)
		if errors.Is(err, unix.EPIPE) {
			return ignoreClosedPipe(err)
		}
		damage = errors.Join(damage, err)
	}
	if !some && (events || o.definitions) {
		damage = errors.Join(damage, fmt.Errorf("%s has no locations", arg))
	}
	return damage
}

// readEvents reads the events and prints nothing.
func readEvents(_ io.Writer, a *otf2.Archive, opts *otf2print.Options) error {
	var damage []error
	for _, err := range a.Events(&otf2.Selection{Locations: opts.Locations, From: opts.From, To: opts.To}) {
		if err != nil {
			damage = append(damage, err)
		}
	}
	return errors.Join(damage...)
}

// ignoreClosedPipe returns nil for the error that means that the reader of the output (head, less) has ended.
func ignoreClosedPipe(err error) error {
	if errors.Is(err, unix.EPIPE) {
		return nil
	}
	return err
}

// openArchive opens the archive that a path argument means, with times in nanoseconds; it may have to make it from a
// recording (findArchive). It detects operations that some ranks lack, so that later operations are matched correctly.
// If definitions are damaged, it returns what could be read, and an error.
func openArchive(arg string) (*otf2.Archive, error) {
	return openArchiveWith(arg, analysis.Open, otf2.ReadOptions{Nanoseconds: true})
}

// openArchiveWith opens the archive that a path argument means by open, otf2.Open or analysis.Open.
func openArchiveWith(arg string, open func(string, *otf2.ReadOptions) (*otf2.Archive, error), opts otf2.ReadOptions) (
	*otf2.Archive, error) {
	path, name, err := findArchive(arg)
	if err != nil {
		return nil, err
	}
	opts.Name = name
	a, err := open(path, &opts)
	if a != nil {
		limitGarbage(len(a.Defs.Locations), garbage)
	}
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: the archive is not complete", err)
		// the second of one run of several
		for _, dir := range []string{filepath.Dir(path), filepath.Dir(filepath.Dir(path))} {
			if isDir(filepath.Join(dir, experiment.Folder)) { // other archives come from other tools
				err = fmt.Errorf("%w; make it again with `nccl-otf2 unify %s`", err, dir)
				break
			}
		}
	case errors.Is(err, otf2.ErrNotSupported):
		err = fmt.Errorf("%w: this tool does not read such archives", err)
	}
	return a, err
}
