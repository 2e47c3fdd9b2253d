// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// plugin is a profiler plugin that is run beside others: none, the empty one, ours, or one of the command line.
type plugin struct {
	name     string
	file     string         // "none": there is none
	settings []string       // of the environment, as NAME=value; {dir} in them is the folder of a run
	kept     *regexp.Regexp // has a match for each operation in what it wrote; nil: nobody can tell
	ours     bool
	peer     bool // the command line names it
}

// emptyPlugin asks for the events of a preset and does nothing with them.
func emptyPlugin(host *caller.Host, preset string) (*plugin, error) {
	mask, err := config.ParseEvents(preset)
	return &plugin{name: "empty, " + preset, file: host.Empty,
		settings: []string{fmt.Sprintf("EMPTY_PLUGIN_EVENTS=%#x", mask)}}, err
}

// ourPlugin records the events of a preset. What is recorded is of no use, so no archive is made.
func ourPlugin(host *caller.Host, preset string) *plugin {
	return &plugin{name: preset, file: host.Plugin, ours: true,
		settings: []string{"NCCL_OTF2_DIR={dir}", "NCCL_OTF2_EVENTS=" + preset, "NCCL_OTF2_UNIFY=off"}}
}

// pluginUsage says how plugins.Set reads one.
const pluginUsage = "`NAME=FILE[,VARIABLE=VALUE…][,kept=REGEXP]`: a further plugin to run; {dir} in a value is the " +
	"folder of the run, and REGEXP has a match in its files for each operation that it kept; may be repeated"

// plugins is a flag that may be repeated.
type plugins []*plugin

// String implements flag.Value.
func (l *plugins) String() string { return fmt.Sprint(len(*l)) }

var errSpec = errors.New("NAME=FILE wanted, and VARIABLE=VALUE behind commas")

// Set implements flag.Value. What follows kept= belongs to it, commas too.
func (l *plugins) Set(text string) error {
	p := &plugin{peer: true}
	text, kept, counted := strings.Cut(text, ",kept=")
	if counted {
		var err error
		if p.kept, err = regexp.Compile(kept); err != nil {
			return err
		}
	}
	for i, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || name == "":
			return fmt.Errorf("%q: %w", part, errSpec)
		case i > 0:
			p.settings = append(p.settings, part)
			continue
		}
		file, err := filepath.Abs(value)
		if err == nil {
			_, err = os.Stat(file)
		}
		if err != nil {
			return err
		}
		p.name, p.file = name, file
	}
	*l = append(*l, p)
	return nil
}

// environment are the settings of a run in a folder.
func (p *plugin) environment(dir string) []string {
	var all []string
	for _, s := range p.settings {
		all = append(all, strings.ReplaceAll(s, "{dir}", dir))
	}
	return all
}

// left looks at what a run left in its folder: bytes, and operations that were kept; -1: nobody can tell.
func (p *plugin) left(dir string) (size int64, operations int, err error) {
	if p.kept == nil {
		operations = -1
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // who writes for the plugin may still be at work, and rename it
			return nil
		}
		size += int64(len(text))
		if p.kept != nil {
			for line := range bytes.Lines(text) {
				operations += len(p.kept.FindAllIndex(line, -1))
			}
		}
		return err
	})
	return size, operations, err
}
