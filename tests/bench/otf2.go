// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// childArgument makes this program run one case of ours instead of comparing.
const childArgument = "-case-of-ours"

// comparison compares package otf2 with libotf2's C API. Every case runs in processes of their own, ours and libotf2's
// in turn. That both did the same is checked: number of events, and the sum of all times, fields and attribute values,
// of archives that either wrote.
type comparison struct {
	*bench
	self    string // this program
	libotf2 string
	printer string          // nccl-otf2
	made    map[string]bool // archives
	table   *Table
	notes   []string
}

// sample is one outcome of each side; libotf2's is nil where it failed.
type sample struct{ ours, libotf2 *outcome }

func prepareOTF2(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error) {
	b.addFlags(flags, 7)
	return func(context.Context) (*Page, error) { return compareOTF2(b) }
}

// compareOTF2 runs all cases that match.
func compareOTF2(b *bench) (*Page, error) {
	c := &comparison{bench: b, made: make(map[string]bool), table: &Table{Columns: []string{"case", "unit", "ours",
		"libotf2", "ratio", "ratio CPU", "aim", ""}}}
	heading := machine()
	var version string
	var err error
	if c.self, err = os.Executable(); err != nil {
		return nil, err
	}
	if c.libotf2, version, err = buildLibotf2(b.dir); err != nil {
		return nil, err
	}
	for _, one := range cases(b.scale) {
		if !b.match.MatchString(one.name) {
			continue
		}
		say("%s", one.name)
		if err := c.runOne(&one); err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	if len(c.table.Rows) == 0 {
		return nil, fmt.Errorf("no case matches %q", b.match)
	}
	return &Page{Heading: fmt.Sprintf("%s; %s; libotf2 %s; best (median) of up to %d alternating rounds", heading,
		runtime.Version(), version, b.rounds), Tables: []*Table{c.table}, Notes: c.notes}, nil
}

func (b *comparison) runOne(c *benchCase) error {
	var samples []sample
	rounds := b.rounds
	if c.rounds > 0 {
		rounds = min(rounds, c.rounds)
	}
	libotf2Fails := "" // if so
	if c.does != "write" {
		if err := b.prepare(c); err != nil {
			return err
		}
		if want := c.locations * libotf2Memory(c.chunk) * 3 / 2; want > availableMemory() {
			libotf2Fails = fmt.Sprintf("libotf2 was left out: it would take about %d MiB", want>>20)
		}
	}
	for range rounds {
		var s sample
		var err error
		if s.ours, err = b.ours(c); err != nil {
			return err
		}
		if libotf2Fails == "" {
			if s.libotf2, err = b.theirs(c); err != nil {
				var failed *runError
				if !errors.As(err, &failed) || c.locations == 1 {
					return err
				}
				libotf2Fails = "libotf2 failed: " + err.Error()
			} else if err := same(s.ours, s.libotf2); err != nil {
				return err
			}
		}
		if n := c.locations * c.events; s.ours.Events != n {
			return fmt.Errorf("%d events instead of %d", s.ours.Events, n)
		}
		samples = append(samples, s)
	}
	if libotf2Fails != "" {
		b.notes = append(b.notes, c.name+": "+libotf2Fails)
	}
	if c.does == "write" {
		if err := b.crossCheck(c); err != nil {
			return err
		}
	}
	if c.files > 0 && libotf2Fails == "" {
		const usual = 1024 // the limit of a process that does not ask for more, in most systems
		if _, err := runCase(b.libotf2, c.arguments(usual, b.anchor(c))...); err != nil {
			b.notes = append(b.notes, fmt.Sprintf(
				"%s: with the usual limit of %d open files libotf2 fails (%s)", c.name, usual, reason(err)))
		}
	}
	for i := range c.rows {
		b.table.Rows = append(b.table.Rows, c.rows[i].cells(samples))
	}
	return nil
}

// reason finds what libotf2 said of its first failure that is not an absent file.
func reason(err error) string {
	var failed *runError
	if errors.As(err, &failed) {
		for line := range strings.Lines(failed.stderr) {
			if _, text, ok := strings.Cut(line, "error: "); ok && !strings.Contains(text, "does not exist") {
				text, _, _ = strings.Cut(text, ": ")
				return text
			}
		}
	}
	return err.Error()
}

// libotf2Memory is the room that libotf2 takes per location when it reads: one chunk.
func libotf2Memory(chunk uint64) uint64 { return max(chunk, 1<<18) }

func availableMemory() uint64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kib uint64
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); err == nil {
			break
		}
	}
	return kib << 10
}

func (b *comparison) anchor(c *benchCase) string {
	return filepath.Join(b.dir, c.archive(), "traces.otf2")
}

// prepare makes the archive that a case reads.
func (b *comparison) prepare(c *benchCase) error {
	if c.does == "print" && b.printer == "" {
		tool := filepath.Join(b.dir, "nccl-otf2")
		build := exec.Command(cmp.Or(os.Getenv("GO"), "go"), "build", "-o", tool,
			"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2")
		build.Dir = b.root
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
		b.printer = tool
	}
	if b.made[c.archive()] {
		return nil
	}
	dir := filepath.Dir(b.anchor(c))
	var err error
	if c.chunk == 0 {
		w := *c
		w.does = "write"
		_, err = runCase(b.libotf2, w.arguments(0, dir)...)
	} else {
		_, err = writeArchive(c.kind, c.locations, c.events, c.chunk, dir)
	}
	b.made[c.archive()] = err == nil
	return err
}

func (b *comparison) ours(c *benchCase) (*outcome, error) {
	switch c.does {
	case "print":
		s, err := runPrinter(b.printer, "print", b.anchor(c))
		return &outcome{Events: c.events, Phases: map[string]span{"all": s}}, err
	case "write":
		return b.write(c, "ours", b.self, childArgument)
	}
	return runCase(b.self, append([]string{childArgument}, c.arguments(c.files, b.anchor(c))...)...)
}

func (b *comparison) theirs(c *benchCase) (*outcome, error) {
	switch c.does {
	case "print":
		s, err := runPrinter("otf2-print", b.anchor(c))
		if err != nil {
			return nil, err
		}
		return &outcome{Events: c.events, Phases: map[string]span{"all": s}}, b.samePrints(c)
	case "write":
		return b.write(c, "libotf2", b.libotf2)
	}
	return runCase(b.libotf2, c.arguments(0, b.anchor(c))...)
}

// write runs a case that writes into a folder that is new each time and stays until the next.
func (b *comparison) write(c *benchCase, who string, program ...string) (*outcome, error) {
	dir := filepath.Join(b.dir, who)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return runCase(program[0], append(program[1:], c.arguments(0, dir)...)...)
}

// same checks that both did the same.
func same(ours, libotf2 *outcome) error {
	if ours.Events != libotf2.Events || ours.Sum != libotf2.Sum {
		return fmt.Errorf("not the same work: %d events with sum %d by otf2, %d events with sum %d by libotf2",
			ours.Events, ours.Sum, libotf2.Events, libotf2.Sum)
	}
	return nil
}

// crossCheck reads both archives of a case that writes, each with the other side's reader.
func (b *comparison) crossCheck(c *benchCase) error {
	read := *c
	read.does = "global"
	libotf2, err := runCase(b.libotf2, read.arguments(0, filepath.Join(b.dir, "ours", "traces.otf2"))...)
	if err != nil {
		return err
	}
	ours, err := runCase(b.self, append([]string{childArgument},
		read.arguments(0, filepath.Join(b.dir, "libotf2", "traces.otf2"))...)...)
	if err != nil {
		return err
	}
	if ours.Events != c.locations*c.events {
		return fmt.Errorf("%d events of %d are in the archive", ours.Events, c.locations*c.events)
	}
	return same(ours, libotf2)
}

// samePrints checks, once per archive, that both tools print the same bytes.
func (b *comparison) samePrints(c *benchCase) error {
	done := "printed " + c.archive()
	if b.made[done] {
		return nil
	}
	var sums [2][]byte
	for i, command := range [][]string{{b.printer, "print", b.anchor(c)}, {"otf2-print", b.anchor(c)}} {
		h := sha256.New()
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdout = h
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
		}
		sums[i] = h.Sum(nil)
	}
	if !bytes.Equal(sums[0], sums[1]) {
		return errors.New("nccl-otf2 print and otf2-print print different texts")
	}
	b.made[done] = true
	return nil
}
