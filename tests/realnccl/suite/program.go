// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Program is a job: what its ranks call, in the language of the driver.
type Program struct {
	Group   string // of programs, a row of tests/realnccl/results.md
	Name    string
	Args    []string // of the driver: processes, ranks in each, how they are driven
	Text    string
	Env     []string
	Short   bool   // also in make test
	Seconds int    // limit of time; 0: 20
	Since   string // first release that can do it; "": all
	Source  string // programs that do as a framework does: repository at a tag, file, function
	Exit    int    // of the driver
	// EndsLater: some kernels wait for a rank that is late when their ends have been stamped.
	EndsLater bool
	// Unfinished: operations are called that never run.
	Unfinished bool
}

func (p *Program) limit() time.Duration {
	return cmp.Or(Limit, time.Duration(p.Seconds)*time.Second, 20*time.Second)
}

// number is the value of an option of the driver.
func (p *Program) number(option string, otherwise int) int {
	if i := slices.Index(p.Args, option); i >= 0 {
		if n, err := strconv.Atoi(p.Args[i+1]); err == nil {
			return n
		}
	}
	return otherwise
}

// RanksEach is how many ranks each of them drives.
func (p *Program) RanksEach() int { return p.number("-g", 1) }

//go:embed programs.txt
var programs string

// Programs is everything that is run: programs.txt.
var Programs = parse()

func parse() (all []Program) {
	group := ""
	for line := range strings.Lines(programs) {
		text := strings.TrimSpace(line)
		switch heading, isGroup := strings.CutPrefix(text, "== "); {
		case isGroup:
			group = heading
		case strings.HasPrefix(line, "\t#"):
			all[len(all)-1].Source = strings.TrimPrefix(text, "# ")
		case strings.HasPrefix(line, "\t"):
			all[len(all)-1].Text = text
		case text != "" && text[0] != '#':
			name, rest, _ := strings.Cut(text, ": ")
			p := Program{Group: group, Name: name}
			for word := range strings.FieldsSeq(rest) {
				p.Mark(word)
			}
			all = append(all, p)
		}
	}
	return all
}

// Mark takes a word behind a program's name.
func (p *Program) Mark(word string) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "short":
		p.Short = true
	case "ends-later":
		p.EndsLater = true
	case "unfinished":
		p.Unfinished = true
	case "seconds":
		p.Seconds, _ = strconv.Atoi(value)
	case "exit":
		p.Exit, _ = strconv.Atoi(value)
	case "since":
		p.Since = value
	default:
		if strings.HasPrefix(name, "NCCL_") {
			p.Env = append(p.Env, word)
		} else {
			p.Args = append(p.Args, word)
		}
	}
}

// FullName tells a program from all others.
func (p *Program) FullName() string { return strings.ReplaceAll(p.Group, " ", "-") + "/" + p.Name }

// Ends is how the driver should end: see Result.Says.
func (p *Program) Ends() string { return (&Result{Exit: p.Exit}).Says() }

// RunsOn says whether a release can do what the program does.
func (p *Program) RunsOn(release string) bool {
	return p.Since == "" || version(release) >= version(p.Since)
}

// version makes releases comparable: their first two numbers.
func version(release string) int {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 {
		return math.MaxInt // one without a number is new
	}
	return major*1000 + minor
}
