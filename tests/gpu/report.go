// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/recording"
)

// run is everything that the report tells.
type run struct {
	machine  string
	commit   string
	began    time.Time
	results  []*result
	notRun   []string // cases, with the reason
	costs    costs
	overhead *verdict // nil: not measured
}

func (r *run) failed() (n int) {
	for _, res := range r.results {
		if !res.passed() {
			n++
		}
	}
	if r.overhead != nil && !r.overhead.passed() {
		n++
	}
	return n
}

func (res *result) word() string {
	switch {
	case !res.passed():
		return "**FAILED**"
	case len(res.skipped) > 0:
		return "passed, checks SKIPPED"
	}
	return "passed"
}

// markdown is the report.
func (r *run) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Run on a GPU, %s\n\n%s; nccl-otf2 %s\n\n", r.began.UTC().Format("2006-01-02 15:04 UTC"),
		r.machine, r.commit)
	fmt.Fprintf(&b, "%d cases run, %d failed, %d not run.\n\n", len(r.results), r.failed(), len(r.notRun))
	b.WriteString(
		"| case | result | operations compared | gpu | network | enqueue | s |\n|---|---|---|---|---|---|---|\n")
	for _, res := range r.results {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %.1f |\n", res.name(), res.word(), res.compared,
			res.sources["gpu"], res.sources["network"], res.sources["enqueue"], res.seconds)
	}
	for _, n := range r.notRun {
		fmt.Fprintf(&b, "| %s | NOT RUN | | | | | |\n", n)
	}
	for _, res := range r.results {
		res.details(&b, res.name())
	}
	if r.overhead == nil {
		return b.String()
	}
	r.overhead.details(&b, "overhead")
	b.WriteString("\n## Cost per call on the host, µs until the call returns\n\n" + r.costs.table(false))
	b.WriteString("\n## Cost per call on the GPU, µs between CUDA events around many calls\n\n" + r.costs.table(true))
	b.WriteString(
		"\nMedians of both ranks' measurements of all rounds; in brackets the ratio to no plugin. noise: how far the " +
			"medians of single rounds " +
			"without plugin lie apart. The ranks share one GPU, which runs them in turns.\n")
	return b.String()
}

func (v *verdict) details(b *strings.Builder, name string) {
	if len(v.failures)+len(v.skipped)+len(v.notes) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", name)
	for _, f := range v.failures {
		fmt.Fprintf(b, "* **FAILED**: %s\n", f)
	}
	if v.more > 0 {
		fmt.Fprintf(b, "* **FAILED**: %d more like these\n", v.more)
	}
	for _, s := range v.skipped {
		fmt.Fprintf(b, "* SKIPPED: %s\n", s)
	}
	for _, n := range v.notes {
		fmt.Fprintf(b, "* %s\n", n)
	}
}

// mostBytes of one packed file, and of a recording.
const mostBytes = 12 << 20

// pack writes what is worth keeping to out, at most eight files: the report, the logs and archives of failed cases, one
// archive, and the recording with what was called, in the schema of testdata/nccl-callbacks.
func (r *run) pack(out string) error {
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	var failed, kept []string
	recorded := false
	for _, res := range r.results {
		switch {
		case !res.passed():
			failed = append(failed, res.dir)
		case res.plugin == "record" && !recorded:
			recorded = true // there is room for one
			if err := packRecording(res, r.machine, filepath.Join(out, "recording")); err != nil {
				res.fail("the recording is not kept: %v", err)
				failed = append(failed, res.dir)
			}
		case res.plugin == "" && kept == nil:
			kept = []string{res.dir}
		}
	}
	for name, dirs := range map[string][]string{"failed.tar.gz": failed, "archive.tar.gz": kept} {
		if len(dirs) == 0 {
			continue
		}
		if err := packFolders(filepath.Join(out, name), dirs); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, "report.md"), []byte(r.markdown()), 0o666)
}

// packFolders packs folders that lie side by side; without the experiment directories if they are too large.
func packFolders(path string, dirs []string) error {
	for _, exclude := range [][]string{nil, {"--exclude=experiment"}} {
		args := append(exclude, "-C", filepath.Dir(dirs[0]), "-czf", path)
		for _, d := range dirs {
			args = append(args, filepath.Base(d))
		}
		if out, err := exec.Command("tar", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("tar: %w: %s", err, out)
		}
		if st, err := os.Stat(path); err != nil || st.Size() <= mostBytes {
			return err
		}
	}
	fmt.Println("NOT KEPT:", path, "is too large")
	return os.Remove(path)
}

// packRecording copies a recording and adds what the ranks called, and to run.json where it comes from.
func packRecording(res *result, machine, to string) error {
	from := filepath.Join(res.dir, "experiment", "recording")
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	info := make(map[string]any)
	text, err := os.ReadFile(filepath.Join(from, "run.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &info); err != nil {
		return err
	}
	info["name"] = fmt.Sprintf("gpu-%s-%dp", res.mode, res.ranks)
	info["what"] = "a real GPU: " + machine
	info["driving"] = "PyTorch, one process a rank, all on one GPU: tests/gpu/job.py --mode " + res.mode
	info["program"] = res.mode
	if text, err = json.MarshalIndent(info, "", " "); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "run.json"), append(text, '\n'), 0o666); err != nil {
		return err
	}
	for rank := range res.ranks {
		name := recording.Calls(rank)
		lines, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if len(lines) > mostBytes {
			return fmt.Errorf("%s has %d bytes", name, len(lines))
		}
		if err := os.WriteFile(filepath.Join(to, name), lines, 0o666); err != nil {
			return err
		}
		l, err := readJobLog(logFile(res.dir, rank))
		if err != nil {
			return err
		}
		if err := writeIssues(l, filepath.Join(to, recording.Issued(rank))); err != nil {
			return err
		}
	}
	return nil
}

// words are those of recordings' programs.
var words = map[string]string{"AllReduce": "ar", "AllGather": "ag", "ReduceScatter": "rs", "Broadcast": "bc",
	"Reduce":   "rd",
	"AlltoAll": "alltoall", "Gather": "gather", "Scatter": "scatter", "Batch": "sr"}

func writeIssues(l *jobLog, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	zip := gzip.NewWriter(f)
	for _, c := range l.calls {
		root := ""
		if c.Root >= 0 {
			root = strconv.Itoa(c.Root)
		}
		ranks := l.ranks[c.Comm]
		fields := map[string]any{"t0": c.T0, "t1": c.T1, "worldRank": l.Rank, "comm": slices.Index(l.comms, c.Comm),
			"commRank": slices.Index(ranks, l.Rank), "nranks": len(ranks), "stream": 0, "op": words[c.Op],
			"count": c.Count,
			"a":     []string{root, c.Dtype}}
		if c.Done > 0 {
			fields["done"] = c.Done
		}
		if c.EventNs > 0 {
			fields["eventNs"] = c.EventNs
		}
		line, err := json.Marshal(fields)
		if err != nil {
			return err
		}
		if _, err := zip.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return f.Close()
}
