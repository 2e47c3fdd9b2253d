// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/check"
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
)

// result is a case and what became of it.
type result struct {
	*testCase
	verdict
	dir     string
	seconds float64
}

// settings are the environment variables by which the job is recorded as the case says.
func (h *harness) settings(c *testCase, experiment string) []string {
	switch c.plugin {
	case "none":
		return nil
	case "empty":
		return []string{"NCCL_PROFILER_PLUGIN=" + h.empty}
	}
	set := []string{"NCCL_PROFILER_PLUGIN=" + h.plugin, "NCCL_OTF2_DIR=" + experiment, "NCCL_OTF2_START_LIMIT=20"}
	if c.plugin == "record" {
		return append(set, "NCCL_OTF2_MODE=record")
	}
	set = append(set, "NCCL_OTF2_EVENTS="+c.events)
	if c.cupti {
		set = append(set, "NCCL_OTF2_CUPTI=on")
	}
	if c.also != "" {
		set = append(set, "NCCL_OTF2_"+c.also)
	}
	return set
}

// play runs a case's job and checks what it left in dir.
func (h *harness) play(ctx context.Context, c *testCase, dir string, v *verdict) (logs []*jobLog) {
	experiment := filepath.Join(dir, "experiment")
	j := &job{mode: c.mode, ranks: c.ranks, settings: h.settings(c, experiment)}
	if c.keep {
		j.args = []string{"--keep"}
	}
	if c.hangs {
		j.hanging = func() { h.whileItHangs(ctx, v, c.answer, experiment, dir) }
	}
	logs, said, err := h.run(ctx, j, dir)
	if err != nil {
		v.fail("the job: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	for _, l := range logs {
		if l == nil {
			return logs
		}
		for _, w := range l.wrong {
			v.fail("rank %d: wrong result: %s", l.Rank, w)
		}
	}
	if c.plugin == "none" {
		return logs
	}
	v.warnings(said, c.says)
	if err := h.collect(ctx, v, experiment, c.plugin != "record"); err != nil {
		v.fail("%v", err)
		return logs
	}
	switch {
	case c.plugin == "record":
		v.recording(filepath.Join(experiment, "recording"), logs)
		return logs
	case c.hangs:
		v.hung(ctx, h, c.answer, experiment)
	default:
		v.archive(ctx, c, experiment, logs)
	}
	v.answered(ctx, h, c.answer, experiment)
	return logs
}

var (
	warning = regexp.MustCompile(`NCCL WARN.*NCCL_OTF2: .*`)
	line    = regexp.MustCompile(`NCCL_OTF2: .*`)
)

// warnings looks through what the ranks wrote for lines of the plugin's: what must be there, or no warning.
func (v *verdict) warnings(said []string, must *regexp.Regexp) {
	for rank, text := range said {
		found := false
		for _, l := range line.FindAllString(text, -1) {
			found = found || must != nil && must.MatchString(l)
		}
		if must != nil && !found {
			v.fail("rank %d: the plugin does not say what matches %q", rank, must)
		}
		for _, w := range warning.FindAllString(text, -1) {
			if must == nil || !must.MatchString(w) {
				v.fail("rank %d: the plugin warns: %s", rank, w)
			}
		}
	}
}

// archive checks the archive by itself and against the logs.
func (v *verdict) archive(ctx context.Context, c *testCase, experiment string, logs []*jobLog) {
	anchor := filepath.Join(experiment, "traces.otf2")
	checked, err := check.Archive(anchor, nil)
	if err != nil {
		v.fail("check: %v", err)
		return
	}
	for _, f := range checked.Findings {
		if f.Severity == check.Note {
			v.note("check: %v", f)
			continue
		}
		v.fail("check: %v", f)
	}
	v.otf2Print(ctx, anchor)
	a, err := readArchive(experiment)
	if err != nil {
		v.fail("the archive: %v", err)
		return
	}
	v.check(c, logs, a)
}

// check holds an archive against the logs.
func (v *verdict) check(c *testCase, logs []*jobLog, a *archive) {
	pairs := v.compare(logs, a, c.mode == "graphs")
	v.complete(a, c.ranks)
	v.timing(a, c.gpu(), logs[0].NCCL)
	v.intervals(pairs)
	v.overlaps(a)
	v.phases(logs, a)
	if c.more != nil {
		c.more(v, logs, a)
	}
}

// otf2Print reads the archive with the reference tool, where there is one.
func (v *verdict) otf2Print(ctx context.Context, anchor string) {
	if _, err := exec.LookPath("otf2-print"); err != nil {
		v.skip("otf2-print -Werror: it is not installed")
		return
	}
	cmd := exec.CommandContext(ctx, "otf2-print", "-Werror", "--silent", anchor)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		v.fail("otf2-print -Werror: %v: %s", err, strings.TrimSpace(stderr.String()))
	}
}

// recording checks that a job in record mode left what replay can play: as many operations as were called.
func (v *verdict) recording(folder string, logs []*jobLog) {
	rec, err := replay.Load(folder)
	if err != nil {
		v.fail("%v", err)
		return
	}
	if len(rec.Processes) != len(logs) {
		v.fail("%d processes are in the recording, want %d", len(rec.Processes), len(logs))
		return
	}
	for rank, l := range logs {
		calls, want := 0, 0
		for _, ev := range rec.Processes[rank].Events {
			if ev.Type == descriptor.TypeCollApi {
				calls++
			}
		}
		for _, name := range l.comms {
			want += len(l.expected(name))
		}
		v.compared += want
		if calls != want {
			v.fail("rank %d: %d calls of collectives in the recording, %d were made", rank, calls, want)
		}
	}
}

// probe asks PyTorch what there is. The error says what is missing.
func (h *harness) probe(ctx context.Context) (text string, err error) {
	const program = `import ctypes, torch
assert torch.cuda.is_available(), "PyTorch finds no GPU"
d, v = torch.cuda.get_device_properties(0), ctypes.c_int()
ctypes.CDLL("libnccl.so.2").ncclGetVersion(ctypes.byref(v))  # the one that is loaded; PyTorch knows the one that it was built with
print(f"{d.name}, {d.total_memory >> 20} MiB; PyTorch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {v.value // 10000}.{v.value // 100 % 100}.{v.value % 100}")`
	cmd := exec.CommandContext(ctx, h.python, "-c", program)
	cmd.Env = append(os.Environ(), h.instead()...)
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	text = lines[len(lines)-1]
	if err != nil {
		return "", fmt.Errorf("a GPU and PyTorch with NCCL are needed: %s: %s", h.python, text)
	}
	driver, err := os.ReadFile("/proc/driver/nvidia/version")
	if errors.Is(err, os.ErrNotExist) {
		return text, nil
	}
	first, _, _ := strings.Cut(string(driver), "\n")
	return text + "; " + strings.Join(strings.Fields(first), " "), err
}
