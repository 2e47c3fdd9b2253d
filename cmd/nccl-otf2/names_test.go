// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/nccl-otf2/nccl-otf2/internal/collector/control"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/scorep"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// evil is a name that takes a terminal over, turns what follows it round, and makes up a line of its own.
const evil = "=cmd\x1b]0;x\a\x1b[2J\u009b31m\u202eno\nnccl-otf2: all is well\r\t\x7f\u200b"

// evilJob leaves a job in which everything that a program or its surroundings name is evil: one process has ended, one
// was killed.
func evilJob(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "exp"+evil)
	const us, t0 = 1000, shardtest.Epoch + 1_000_000
	for r := range 2 {
		p := shardtest.New(t, dir, fmt.Sprint("p", r)).On("host"+evil, 100+r).Launched("slurm"+evil, r, 2)
		p.Shard.Executable, p.Shard.Library = "/bin/"+evil, evil
		p.Shard.Settings = map[string]string{"MODE": "trace", "EVENTS": evil}
		p.GPU(r, "GPU-"+evil, evil)
		world := p.Comm(description.Comm{ID: 7, Name: evil, NRanks: 2, Rank: r, InitTime: t0})
		for i := range uint64(3) {
			p.Call("ncclAllReduce"+evil, t0+(100+i*50)*us, t0+(105+i*50)*us)
			p.Collective(world, shardtest.Op{Function: "AllReduce", Algo: evil, Proto: evil, Datatype: evil,
				Begin: t0 + (110+i*50+uint64(r)*9)*us, End: t0 + (145+i*50)*us, Count: 8})
		}
		phase := p.Region(evil, "Application phases", otf2.RegionRoleUnknown)
		p.Writer(0).Enter(t0+400*us, nil, phase)
		p.Writer(0).Leave(t0+500*us, nil, phase)
		p.Shard.Markers = append(p.Shard.Markers,
			description.Marker{Time: t0 + 120*us, Severity: otf2.MarkerSeverityHigh, Category: evil, Text: evil,
				Location: -1})
		p.Shard.Pending = []description.Pending{{Comm: world, Function: "AllReduce", Ordinal: uint64(3 + r),
			Since: t0 + 600*us, State: evil}}
		if r == 0 {
			p.Finish()
		} else {
			p.Flush()
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "shards", evil[:4]+evil[5:40]),
		0o700); err != nil { // a shard that is damaged
		t.Fatal(err)
	}
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "shards", "evil"+strings.ReplaceAll(evil, "/", "")+".spool"),
		[]byte("x"), 0o600))
	return dir
}

// tool runs a command in this program. What it returns is all that would be seen on a terminal.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	read, write, err := os.Pipe()
	testkit.Must(t, err)
	stdout, stderr := os.Stdout, os.Stderr
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	os.Stdout, os.Stderr = write, write
	seen := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(read)
		seen <- b
	}()
	Main(args)
	write.Close()
	return string(<-seen)
}

// toolOnTerminal runs a command whose standard output is a terminal.
func toolOnTerminal(t *testing.T, args ...string) string {
	t.Helper()
	master, slave := openTerminal(t)
	stdout := os.Stdout
	os.Stdout = slave
	defer func() { os.Stdout = stdout }()
	seen := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(master) // ends with an error when the other end is closed
		seen <- b
	}()
	Main(args)
	slave.Close()
	return string(<-seen)
}

// Nothing that a job or an archive names reaches a terminal as it is, in no command that writes for people.
func TestEvilNames(t *testing.T) {
	dir := evilJob(t)
	plain := filepath.Join(t.TempDir(), "plain")
	commands := [][]string{
		{"report", "--hang", dir}, {"top", "--once", dir}, {"unify", dir}, {"check", dir}, {"unify", dir},
		{"ctl", "status", dir}, {"ctl", "start", dir},
		{"profile", dir}, {"print", "--cube", dir}, {"export", "--jsonl", dir, "--output", plain + ".jsonl"},
		{"export", "--parquet", dir, "--output", plain}, {"export", "--perfetto", dir, "--output", plain + ".pftrace"},
		{"view", "--scalasca", dir, "--output", plain + "-scalasca"},
		{"view", "--simple", dir, "--output", plain + "-simple"}, {"query", dir, "waits"},
		{"query", dir + "/none" + evil, "waits"},
		{"timeline", dir, "--output", plain + ".html"}, {"recover", dir}, {"merge", dir, "--output", plain + "-merged"},
		{"diff", dir, dir},
		{"report", dir, "--format", "json", "--no-such" + evil}, {"report", filepath.Join(dir, "none"+evil)},
		{"replay", dir}, {"import", dir},
	}
	for _, form := range []string{"table", "csv", "markdown"} {
		commands = append(commands, []string{"report", "--format", form, dir},
			[]string{"diff", "--format", form, dir, dir}, []string{"report", "--hang", "--format", form, dir})
		for _, part := range []string{"waits", "matrix", "tally", "overlap", "phases", "self", "network", "comms"} {
			commands = append(commands, []string{"report", "--" + part, "--format", form, dir})
		}
	}
	shown := 0
	onTerminal := [][]string{{"print", "-A", dir},
		{"print", "--show-markers", "-M", "-C", "-T", dir}} // elsewhere they write what the archive has
	for i, args := range append(commands, onTerminal...) {
		var out string
		if i < len(commands) {
			out = tool(t, args...)
		} else {
			out = strings.ReplaceAll(toolOnTerminal(t, args...), "\r\n", "\n")
		}
		if strings.Contains(out, `\x1b]0;x\a`) || strings.Contains(out, "x1b]0;x") {
			shown++
		}
		for _, line := range strings.Split(out, "\n") {
			if i := strings.IndexFunc(line, func(r rune) bool {
				return unicode.In(r, unicode.Cc, unicode.Cf)
			}); i >= 0 {
				t.Errorf("%q shows %q", args, line[max(0, i-40):min(len(line), i+40)])
				break
			}
			testkit.Check(t, !strings.HasPrefix(line, "nccl-otf2: all is well"),
				"%q shows a line that a name made up", args)
		}
	}
	testkit.Check(t, shown >= 15, "the names are shown by %d commands only", shown)
}

// Cells of CSV are no formulas, and numbers stay numbers.
func TestEvilCells(t *testing.T) {
	dir := evilJob(t)
	tool(t, "unify", dir)
	for _, part := range []string{"", "--waits", "--matrix", "--tally", "--overlap", "--self", "--hang"} {
		args := append([]string{"report", "--format", "csv", dir}, strings.Fields(part)...)
		for _, block := range strings.Split(tool(t, args...), "\n\n") {
			c := csv.NewReader(strings.NewReader(block))
			c.FieldsPerRecord, c.LazyQuotes = -1, true
			rows, err := c.ReadAll()
			testkit.Require(t, err == nil, "%v: %v", args, err)
			for _, cell := range flatten(rows) {
				_, err := strconv.ParseFloat(cell, 64)
				testkit.Check(t, cell == "" || err == nil || !strings.ContainsRune("=+-@\t\r", rune(cell[0])),
					"%v: the cell %q", args, cell)
			}
		}
	}
}

func flatten(rows [][]string) (cells []string) {
	for _, r := range rows {
		cells = append(cells, r...)
	}
	return cells
}

// What ctl and top show of running processes.
func TestEvilStatus(t *testing.T) {
	var b bytes.Buffer
	s := processStatus{Status: control.Status{Host: evil, Rank: 1, Stopped: evil,
		Comms: []control.CommStatus{{Name: evil}}}}
	testkit.Must(t, printStatus(&b, []processStatus{s}, []string{evil}))
	printArchives(&b, &scorep.Result{Problems: []string{evil},
		Runs: []scorep.RunResult{{Archive: evil, Problems: []string{evil}}}})
	if i := strings.IndexFunc(b.String(), func(r rune) bool {
		return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf)
	}); i >= 0 {
		t.Errorf("%q", b.String()[i:])
	}
}
