// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/tests/realnccl/suite"
)

// releaseResults are what became of the programs on one release of NCCL.
type releaseResults struct {
	bed  *suite.Bed
	ways []string
	mu   sync.Mutex
	api  int                          // version of the profiler API that it chose; 0: not known
	of   map[string]map[string]string // by program and way
	gpu  stepTiming
}

func (c *releaseResults) set(r *realRun, says string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := r.program.FullName()
	if c.of[name] == nil {
		c.of[name] = make(map[string]string)
	}
	c.of[name][r.way] = says
	for _, p := range r.shards {
		c.api = p.APIVersion
	}
	if r.times != nil {
		c.gpu.add(r.times)
	}
}

// expected tells outcomes that are as they should be.
func (c *releaseResults) expected(p *suite.Program, way string) bool {
	return c.of[p.FullName()][way] == p.Ends()
}

// text is a line for each program of which something is to be said, and the number of the others.
func (c *releaseResults) text() string {
	var b strings.Builder
	good := 0
	for i := range suite.Programs {
		p := &suite.Programs[i]
		row := c.of[p.FullName()]
		if row == nil {
			continue
		}
		if !slices.ContainsFunc(c.ways, func(w string) bool { return !c.expected(p, w) }) {
			good++
			continue
		}
		fmt.Fprintf(&b, "NCCL %s: %-45s", c.bed.Release, p.FullName())
		for _, w := range c.ways {
			fmt.Fprintf(&b, " %s: %s;", w, row[w])
		}
		b.WriteByte('\n')
	}
	if len(c.gpu.errors) > 0 {
		fmt.Fprintf(&b, "NCCL %s: %v\n", c.bed.Release, &c.gpu)
	}
	fmt.Fprintf(&b, "NCCL %s: %d of %d programs as they should be in all ways: %s\n", c.bed.Release, good, len(c.of),
		strings.Join(c.ways, ", "))
	return b.String()
}

// page is the results as tests/realnccl/results.md shows them.
func (c *releaseResults) page() string {
	origin := "built by hand"
	if c.bed.Published {
		origin = "as published"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "### NCCL %s, %s, API v%d\n\n| programs |", c.bed.Release, origin, c.api)
	for _, w := range c.ways {
		fmt.Fprintf(&b, " %s |", w)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(c.ways)) + "\n")
	var odd []string
	for programs := range byGroup() {
		if !slices.ContainsFunc(programs, func(p suite.Program) bool { return c.of[p.FullName()] != nil }) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", programs[0].Group)
		for _, w := range c.ways {
			b.WriteString(" " + c.cell(programs, w) + " |")
		}
		b.WriteByte('\n')
		for i := range programs {
			odd = append(odd, c.oddities(&programs[i])...)
		}
	}
	if len(odd) > 0 {
		b.WriteString("\n| program | what it calls | otherwise than it should be |\n|---|---|---|\n" +
			strings.Join(odd, ""))
	}
	if len(c.gpu.errors) > 0 {
		fmt.Fprintf(&b, "\nHeld against the kernels: %v.\n", &c.gpu)
	}
	return b.String()
}

// The page lists what frameworks' programs call, and where that was read (go test ./tests -run TestRealProgramsPage
// -update).
func TestRealProgramsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| program | what it calls | read in |\n|---|---|---|\n")
	for i := range suite.Programs {
		if p := &suite.Programs[i]; p.Source != "" {
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", p.FullName(), p.Text, p.Source)
		}
	}
	golden.SectionMadeBy(t, "realnccl/programs.md", "programs of frameworks",
		"go test ./tests -run TestRealProgramsPage -update", b.String())
}

// byGroup goes through the programs, group by group.
func byGroup() func(func([]suite.Program) bool) {
	return func(yield func([]suite.Program) bool) {
		for rest := suite.Programs; len(rest) > 0; {
			n := slices.IndexFunc(rest, func(p suite.Program) bool { return p.Group != rest[0].Group })
			if n < 0 {
				n = len(rest)
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

// cell says how many of the programs are as they should be, of how many were run.
func (c *releaseResults) cell(programs []suite.Program, way string) string {
	run, good := 0, 0
	for i := range programs {
		if p := &programs[i]; c.of[p.FullName()] != nil {
			run++
			if c.expected(p, way) {
				good++
			}
		}
	}
	if run == good {
		return fmt.Sprintf("ok (%d)", run)
	}
	return fmt.Sprintf("**%d of %d**", good, run)
}

// oddities are a row for a program that is not in all ways as it should be.
func (c *releaseResults) oddities(p *suite.Program) []string {
	var says []string
	for _, w := range c.ways {
		if row := c.of[p.FullName()]; row != nil && !c.expected(p, w) {
			says = append(says, w+": "+row[w])
		}
	}
	if says == nil {
		return nil
	}
	return []string{fmt.Sprintf("| %s | `%s` | %s |\n", p.FullName(), p.Text, strings.Join(says, "; "))}
}
