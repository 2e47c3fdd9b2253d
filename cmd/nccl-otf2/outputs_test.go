// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// outputs are all flags of the tool that name what is written, with commands that write there: DIR stands for a job's
// directory, OTHER for another's, REC for a recording, OUT for what the flag names.
var outputs = map[string][]string{
	"timeline --output": {"timeline DIR -o OUT", "timeline DIR OTHER -o OUT"},
	"report --output":   {"report DIR --html -o OUT"},
	"report --svg":      {"report DIR --svg OUT"},
	"export --output": {"export DIR --perfetto -o OUT", "export DIR --prometheus -o OUT",
		"export DIR --jsonl -o OUT", "export DIR --parquet -o OUT", "export DIR --chakra -o OUT",
		"export DIR --program -o OUT"},
	"profile --output":  {"profile DIR -o OUT"},
	"profile --summary": {"profile DIR --summary OUT"},
	"query --output":    {"query DIR matrix -o OUT", "query DIR matrix --format parquet -o OUT"},
	"view --output":     {"view DIR --scalasca -o OUT", "view DIR --simple -o OUT"},
	"merge --output":    {"merge SCOREP DIR -o OUT"},
	"import --output":   {"import LINES -o OUT"},
	"run --dir":         {"run --dir OUT -- true"},
	"replay --dir":      {"replay REC --dir OUT"},
}

// namesOutput is what the help of such a flag says.
var namesOutput = regexp.MustCompile(
	`file to write|file or folder to write|folder for|directory to make|^experiment directory \(|into this`)

// Every flag that names an output is in the table, and known as no input.
func TestOutputsAreAllFlagsThatNameOne(t *testing.T) {
	for _, c := range rootCommand().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name := c.Name() + " --" + f.Name
			if want := f.Value.Type() == "string" && namesOutput.MatchString(f.Usage); want != (outputs[name] != nil) {
				t.Errorf("%s (%s): in the table: %v", name, f.Usage, !want)
			} else if want && !slices.Contains(outputFlags, f.Name) {
				t.Errorf("%s is taken for an input", name)
			}
		})
	}
}

// hashes are the sums of all files below folders.
func hashes(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() || d.Name() == experiment.UnifyLock {
				return err
			}
			b, err := os.ReadFile(path)
			all[path] = fmt.Sprintf("%x", sha256.Sum256(b))
			return err
		})
		testkit.Must(t, err)
	}
	return all
}

// runTool runs a command as the tool does.
func runTool(args ...string) error {
	cmd := rootCommand()
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	return cmd.Execute()
}

// otherPlace is what an error says of an output that cannot be: which one can.
var otherPlace = regexp.MustCompile(`(name|give) (a new|another)|names that end in .cubex only|not a directory`)

// No output replaces data, under whatever name: not that of the input, nor of another job.
func TestNoOutputReplacesData(t *testing.T) {
	dir, other, links := steadyRun(t, 3, 100_000), steadyRun(t, 3, 100_000), t.TempDir()
	lines := filepath.Join(links, "lines")
	testkit.Must(t, errors.Join(runTool("export", dir, "--jsonl", "-o", lines), runTool("export", dir, "--parquet"),
		runTool("export", other, "--parquet"), runTool("profile", dir),
		runTool("view", other, "--simple", "-o", filepath.Join(links, "view"))))
	scorep := testkit.Value(filepath.Abs("../../tests/jobtest/testdata/scorep-mpi"))(t)
	theirs := filepath.Join(links, "theirs")
	testkit.Must(t, os.CopyFS(theirs, os.DirFS(scorep)))
	shards, err := filepath.Glob(filepath.Join(dir, "shards", "*", "shard.json"))
	testkit.Require(t, err == nil && len(shards) != 0, "%v %v", shards, err)
	files := []string{shards[0], filepath.Join(filepath.Dir(shards[0]), "new"), filepath.Join(other, "traces.otf2"),
		filepath.Join(other, "traces", "0.evt"),
		filepath.Join(theirs, "traces.def"), filepath.Join(dir, "traces", "4711.evt"),
		filepath.Join(dir, "traces.marker")}
	for _, name := range []string{"traces.otf2", "traces.def", "traces/0.def", "traces/0.evt"} {
		files = append(files, filepath.Join(dir, filepath.FromSlash(name)))
	}
	for i, file := range files {
		if _, err := os.Stat(file); err != nil {
			continue
		}
		hard, soft, named := filepath.Join(links, fmt.Sprintf("hard%d", i)),
			filepath.Join(links, fmt.Sprintf("soft%d", i)), filepath.Join(links, fmt.Sprintf("hard%d.cubex", i))
		testkit.Must(t, errors.Join(os.Link(file, hard), os.Symlink(file, soft), os.Link(file, named)))
		if !strings.HasPrefix(file, dir) && filepath.Base(file) == "shard.json" {
			continue // a further name of another job's description is none of an input
		}
		files = append(files, hard, soft, named)
	}
	files = append(files, filepath.Join(dir, "..", filepath.Base(dir), "traces.def"))
	folders := []string{filepath.Join(dir, "traces"), filepath.Dir(shards[0]), theirs}
	program := toolWithParts(t)
	before := hashes(t, dir, other, theirs, links)
	check := func(line, out string) {
		t.Helper()
		words := strings.Fields(line)
		for i, w := range words {
			for name, path := range map[string]string{"DIR": dir, "OTHER": other, "OUT": out, "SCOREP": scorep,
				"LINES": lines, "REC": "../../testdata/nccl-callbacks/01-allreduce-2p"} {
				if w == name {
					words[i] = path
				}
			}
		}
		var err error
		if words[0] == "run" || words[0] == "replay" {
			var said []byte
			if said, err = exec.Command(program, words...).CombinedOutput(); err != nil {
				err = errors.New(strings.TrimSpace(string(said)))
			}
		} else {
			err = runTool(words...)
		}
		testkit.Check(t, err != nil && !strings.Contains(err.Error(), "\n") && otherPlace.MatchString(err.Error()),
			"%s to %s: %v", line, out, err)
		after := hashes(t, dir, other, theirs, links)
		for path, sum := range before {
			testkit.Require(t, after[path] == sum, "%s to %s: %s has changed", line, out, path)
		}
		testkit.Require(t, len(after) == len(before),
			"%s to %s: %d files, before %d", line, out, len(after), len(before))
	}
	for flag, commands := range outputs {
		for _, line := range commands {
			for _, out := range files {
				check(line, out)
			}
			if flag == "view --output" || flag == "merge --output" || flag == "import --output" ||
				strings.HasSuffix(flag, "--dir") || strings.Contains(line, "--jsonl") ||
				strings.Contains(line, "--parquet -o") {
				for i, out := range folders {
					if out == theirs && strings.HasPrefix(line, "export") {
						continue // files of other names, which harm nothing
					}
					check(line, out)
					link := filepath.Join(links, fmt.Sprintf("folder%d", i))
					_ = os.Symlink(out, link)
					check(line, link)
				}
			}
		}
	}
	for _, line := range []string{"query DIR matrix --format csv -o OUT", "query DIR matrix --format parquet -o OUT"} {
		check(line, filepath.Join(dir, "parquet", "operations.parquet"))
	}
	for _, line := range []string{"view DIR --simple -o OUT", "view DIR --scalasca -o OUT"} {
		check(line, other)
		check(line, dir)
	}
}

// What the same command wrote before is replaced, under the default name and any other.
func TestOutputsReplaceEarlierOnes(t *testing.T) {
	dir, out := steadyRun(t, 3, 100_000), t.TempDir()
	at := func(name string) string { return filepath.Join(out, name) }
	for range 2 {
		for _, args := range [][]string{
			{"timeline", dir}, {"timeline", dir, "-o", at("page.html")}, {"report", dir, "--html"},
			{"report", dir, "--svg", at("a.svg")},
			{"export", dir, "--perfetto"}, {"export", dir, "--prometheus"},
			{"export", dir, "--jsonl"}, {"export", dir, "--parquet"},
			{"profile", dir, "--summary", at("sum.json")}, {"view", dir, "--simple"}, {"view", dir, "--scalasca"},
			{"view", dir, "--simple", "-o", filepath.Join(dir, "scalasca")},
		} {
			err := runTool(args...)
			testkit.Check(t, err == nil || errors.As(err, new(exitCode)), "%q: %v", args, err)
		}
	}
}

// A link that another user planted where results go by default is not followed to another archive.
func TestFoldersThatOthersPlantedAreNotWrittenTo(t *testing.T) {
	need.Root(t, "give links away")
	for _, tc := range []struct {
		folder string
		args   []string
	}{
		{"scalasca", []string{"view", "--scalasca"}}, {"simple", []string{"view", "--simple"}},
		{"jsonl", []string{"export", "--jsonl"}}, {"parquet", []string{"export", "--parquet"}},
		{"parquet", []string{"unify", "--tables"}}, {"chakra", []string{"export", "--chakra"}},
	} {
		dir, victim := steadyRun(t, 3, 100_000), steadyRun(t, 3, 100_000)
		testkit.Must(t, runTool("view", victim, "--simple", "-o",
			filepath.Join(victim, "view"))) // which a view might replace
		victim = filepath.Join(victim, "view")
		link := filepath.Join(dir, tc.folder)
		testkit.Must(t, errors.Join(os.Symlink(victim, link), os.Lchown(link, 65534, 65534)))
		before := hashes(t, victim)
		testkit.Check(t, runTool(append(tc.args, dir)...) != nil, "%q: no error", tc.args)
		testkit.Check(t, maps.Equal(before, hashes(t, victim)), "%q: what the link leads to has changed", tc.args)
		testkit.Must(t, errors.Join(os.Remove(link), os.Mkdir(link, 0o700), os.Chmod(link, 0o777)))
		testkit.Check(t, runTool(append(tc.args, dir)...) != nil,
			"%q into a folder that anybody may write to: no error", tc.args)
		left, err := os.ReadDir(link)
		testkit.Check(t, err == nil && len(left) == 0, "%q: %v, %v", tc.args, left, err)
	}
}
