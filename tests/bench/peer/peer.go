// SPDX-License-Identifier: Apache-2.0

// Package peer describes other profiler plugins, which benchmarks run beside ours: what the command line says of each,
// and what each kept.
package peer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Plugin is one of them.
type Plugin struct {
	Name     string
	File     string
	Settings []string       // of the environment, as NAME=value; {dir} in them is the folder of a run
	Kept     *regexp.Regexp // has a match for each operation in what it wrote; nil: nobody can tell
}

// Usage says how Set reads one.
const Usage = "`NAME=FILE[,VARIABLE=VALUE…][,kept=REGEXP]`: a further plugin to run; {dir} in a value is the folder of the run, and REGEXP has a match in its files for each operation that it kept; may be repeated"

// List is a flag that may be repeated.
type List []Plugin

// String implements flag.Value.
func (l *List) String() string {
	var names []string
	for _, p := range *l {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

var errSpec = errors.New("NAME=FILE wanted, and VARIABLE=VALUE behind commas")

// Set implements flag.Value. What follows kept= belongs to it, commas too.
func (l *List) Set(text string) error {
	var p Plugin
	text, kept, counted := strings.Cut(text, ",kept=")
	if counted {
		var err error
		if p.Kept, err = regexp.Compile(kept); err != nil {
			return err
		}
	}
	for i, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || name == "":
			return fmt.Errorf("%q: %w", part, errSpec)
		case i > 0:
			p.Settings = append(p.Settings, part)
			continue
		}
		file, err := filepath.Abs(value)
		if err == nil {
			_, err = os.Stat(file)
		}
		if err != nil {
			return err
		}
		p.Name, p.File = name, file
	}
	*l = append(*l, p)
	return nil
}

// Environment are the settings of a run in a folder.
func (p *Plugin) Environment(dir string) []string {
	var all []string
	for _, s := range p.Settings {
		all = append(all, strings.ReplaceAll(s, "{dir}", dir))
	}
	return all
}

// Left is what a run left in its folder.
type Left struct {
	Bytes      int64
	Operations int // that were kept; -1: nobody can tell
}

// Look looks at what a run left in its folder.
func (p *Plugin) Look(dir string) (Left, error) {
	left := Left{}
	if p.Kept == nil {
		left.Operations = -1
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // who writes for the plugin may still be at work, and rename it
			return nil
		}
		left.Bytes += int64(len(text))
		if p.Kept != nil {
			for line := range bytes.Lines(text) {
				left.Operations += len(p.Kept.FindAllIndex(line, -1))
			}
		}
		return err
	})
	return left, err
}
