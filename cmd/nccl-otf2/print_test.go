// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// outputOf runs a command with arguments.
func outputOf(cmd *cobra.Command, args ...string) (string, error) {
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

// TestPrintIsThatOfTheReferenceTool compares the output of all options that both tools have.
func TestPrintIsThatOfTheReferenceTool(t *testing.T) {
	reference := need.Reference(t, "otf2-print")
	t.Setenv("TZ", "UTC")
	anchors, err := filepath.Glob("../../otf2/testdata/*/*.otf2")
	testkit.Require(t, err == nil && len(anchors) == 11, "%d archives, want 11 (%v)", len(anchors), err)
	for _, options := range []string{
		"", "-G", "-I", "-M", "-C", "-M -C", "-A", "-A -M -C", "-L 0", "-L 0 -A", "-L 0 -M", "--time 14 1005",
		"--time 20 500",
		"--timestamps=offset", "--timestamps=offset -G", "--silent", "-A --silent", "--unwind-calling-context",
		"--show-global-defs", "--show-info", "--show-all", "--show-mappings", "--show-clock-offsets", "--location 0",
	} {
		for _, anchor := range anchors {
			args := append(strings.Fields(options), anchor)
			name := filepath.Base(filepath.Dir(anchor))
			switch {
			case name == "v32-events": // an older tool shows what it does not know otherwise
				continue
			case name == "aux-files" && (strings.Contains(options, "-A") ||
				strings.Contains(options, "--show-all")): // thumbnails, which 3.0.2 cannot read
				continue
			case name == "mapping" && strings.HasPrefix(
				options, "--time "): // its corrected times go back, and our reader stops at the first beyond
				continue
			}
			got, err := outputOf(printCommand(), args...)
			testkit.Check(t, err == nil, "%s %s: %v", options, name, err)
			want := testkit.Output(t, exec.Command(reference, args...))
			testkit.Check(t, got == string(want), "print %s %s\n got %.300q\nwant %.300q", options, name, got, want)
		}
	}
}

// An archive without locations ends both tools, behind what they print before.
func TestPrintWithoutLocations(t *testing.T) {
	t.Setenv("TZ", "UTC")
	dir := t.TempDir()
	w, err := otf2.Create(dir, "traces", nil)
	if err == nil {
		err = errors.Join(w.Definitions().ClockProperties(1_000_000_000, 0, 1, 0), w.Definitions().String(0, "x"),
			w.Close())
	}
	testkit.Must(t, err)
	for _, reference := range []string{need.Reference(t, "otf2-print"), need.Tool(t, "otf2-3.2/otf2-print")} {
		for _, options := range []string{"", "-G", "-I", "-A"} {
			args := append(strings.Fields(options), filepath.Join(dir, "traces.otf2"))
			got, err := outputOf(printCommand(), args...)
			cmd := exec.Command(reference, args...)
			cmd.Env = append(cmd.Environ(), "TZ=UTC")
			want, failure := cmd.Output()
			testkit.Check(t, got == string(want) && (err == nil) == (failure == nil),
				"%s %s\n got %q, %v\nwant %q, %v", reference, options, got, err, want, failure)
		}
	}
}

// TestPrintTime takes its two numbers wherever they stand.
func TestPrintTime(t *testing.T) {
	const anchor = "../../otf2/testdata/collectives/nccl.otf2"
	want, err := outputOf(printCommand(), "--time", "1200,1250", anchor)
	testkit.Require(t, err == nil && strings.Count(want, "\n") >= 10, "%v, %s", err, want)
	for _, args := range [][]string{
		{"--time", "1200", "1250", anchor}, {anchor, "--time", "1200", "1250"}, {"--time=1200", "1250", anchor},
		{"--from", "1200", "--to", "1250", anchor},
	} {
		got, err := outputOf(printCommand(), args...)
		testkit.Check(t, err == nil && got == want, "%v: %v, %q", args, err, got)
	}
	for _, args := range [][]string{{"--time", "1200", anchor}, {"--time", "1250,1200", anchor},
		{"--time", "1,x", anchor}, {"--timestamps=x", anchor}} {
		got, err := outputOf(printCommand(), args...)
		testkit.Check(t, err != nil, "%v: no error, %q", args, got)
	}
}

// Where the output is no terminal, texts are written as they are, byte for byte, like otf2-print's: control characters,
// bytes that are no UTF-8, characters that turn others round, quotes.
func TestPrintWritesTextsAsTheyAre(t *testing.T) {
	t.Setenv("TZ", "UTC")
	texts := []string{"tab\there", "\x1b[31mred", "line\nend\rback", "rtl\u202eno", "zero\u200bwidth\ufeff",
		"line\u2028end", "csi\u009b", "del\x7f", "latin \xe4\xff", "\xc3", "\xf0\x9f", "quote\"back\\slash",
		"percent %s %n", "ünï 大 🙂", strings.Repeat("x", 5000) + "\t"}
	for c := 1; c < 32; c++ {
		texts = append(texts, "control "+string(rune(c))+" character")
	}
	dir := t.TempDir()
	w := testkit.Value(otf2.Create(dir, "traces", &otf2.ArchiveOptions{
		MachineName: texts[0], Creator: texts[1], Description: texts[8],
		Properties: []otf2.Property{{Name: "a::b", Value: texts[2]}},
	}))(t)
	defs := w.Definitions()
	testkit.Must(t, errors.Join(defs.ClockProperties(1_000_000_000, 0, 1000, 0), defs.String(0, "")))
	for i, text := range texts {
		testkit.Must(t, defs.String(otf2.StringRef(i+1), text))
	}
	testkit.Must(t, errors.Join(
		defs.SystemTreeNode(0, 1, 0, otf2.UndefinedSystemTreeNode),
		defs.LocationGroup(0, 2, otf2.LocationGroupTypeProcess, 0, otf2.UndefinedLocationGroup),
		defs.Location(0, 3, otf2.LocationTypeCPUThread, 0, 0), defs.Attribute(0, 1, otf2.TypeString, 2),
		defs.Parameter(0, 3, otf2.ParameterTypeString),
		defs.LocationProperty(0, 1, otf2.TypeString, 2),
	))
	for i := range texts {
		testkit.Must(t, defs.Region(otf2.RegionRef(i), otf2.StringRef(i+1), otf2.StringRef(i+1), 0,
			otf2.RegionRoleFunction, otf2.ParadigmUser, 0, otf2.StringRef(i+1), 0, 0))
	}
	events := testkit.Value(w.Events(0))(t)
	attributes := new(otf2.AttributeList)
	for i := range texts {
		attributes.Reset()
		attributes.String(0, otf2.StringRef(i+1))
		testkit.Must(t, errors.Join(events.Enter(otf2.Timestamp(i), attributes, otf2.RegionRef(i)),
			events.ParameterString(otf2.Timestamp(i), nil, 0, otf2.StringRef(i+1)),
			events.Leave(otf2.Timestamp(i), nil, otf2.RegionRef(i))))
	}
	testkit.Must(t, w.Close())
	anchor := filepath.Join(dir, "traces.otf2")
	for form, reference := range map[string]string{"3.0": need.Reference(t, "otf2-print"),
		"3.2": need.Tool(t, "otf2-3.2/otf2-print")} {
		for _, options := range []string{"", "-G", "-I", "-A", "-A -M -C", "-L 0"} {
			args := append(strings.Fields(options), anchor)
			got, err := outputOf(printCommand(), append(args, "--form", form)...)
			testkit.Check(t, err == nil, "%s: %v", options, err)
			want := testkit.Output(t, exec.Command(reference, args...))
			if got != string(want) {
				a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
				for i := range min(len(a), len(b)) {
					if a[i] != b[i] {
						t.Errorf("print %s --form %s\n got %.300q\nwant %.300q", options, form, a[i], b[i])
						break
					}
				}
			}
		}
	}
}
