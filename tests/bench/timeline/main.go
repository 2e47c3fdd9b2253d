// SPDX-License-Identifier: Apache-2.0

// Command timeline measures the timeline's page: how long it takes to make one of an archive that it makes itself, how
// large it is, and how long the page takes to open and to draw in a headless Chromium, which draws with the processor.
//
//	go run ./tests/bench/timeline                                   5 million regions
//	go run ./tests/bench/timeline --regions 1                       1 million
//	go run ./tests/bench/timeline --update docs/performance.md      puts the table into that page
//
// It needs what `make build` makes, and chromium.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/measure"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Aims for a picture: what a screen of 60 Hz leaves, and what still looks as if it moved.
const (
	frameAim = 16.0 // ms, median
	frameMax = 33.0 // ms, 99 of 100
)

// outcome is all that was measured.
type outcome struct {
	machine   string
	Regions   uint64  `json:"regions"`
	Events    uint64  `json:"events"`
	Transfers uint64  `json:"transfers"`
	Ranks     int     `json:"ranks"`
	Make      float64 `json:"make_s"`
	MakeRSS   int64   `json:"make_rss"`
	Size      int64   `json:"size"`
	Serve     float64 `json:"serve_s"` // until it is there
	ServePeak int64   `json:"serve_peak_rss"`
	ServeRSS  int64   `json:"serve_rss"` // from then on
	Open      float64 `json:"open_s"`    // until the first picture
	Frames    []frame `json:"frames"`
}

// frame is what pictures took in one movement.
type frame struct {
	Name     string  `json:"name"`
	Count    int     `json:"count"`
	Median   float64 `json:"median_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	Interval float64 `json:"apart_ms"` // from one picture to the next, median
	CPU      float64 `json:"cpu_ms"`   // processor time of the page's thread for each picture, unpacking included, mean
	Boxes    int     `json:"boxes"`    // bars in the last picture that were drawn by themselves
}

// movements are done in the page, one picture each step: state is what moves, n the step of steps.
var movements = []struct {
	name  string
	steps int
	step  string // JavaScript: app, n (0 … 1)
}{
	{"the whole run", 60, "app.commands.fit()"},
	{"zooming from the whole run to one operation", 240,
		"{ const d = app.state.view.duration, w = d * Math.pow(200000 / d, n); app.go(d * 0.37 - w / 2, d * 0.37 + w / 2) }"},
	{"moving, one operation wide", 180,
		"{ const d = app.state.view.duration, a = d * 0.37 + n * 2e6; app.go(a, a + 200000) }"},
	{"moving, a hundred operations wide", 180,
		"{ const d = app.state.view.duration, a = d * 0.41 + n * 2e7; app.go(a, a + 1e7) }"},
	{"moving, a tenth of the run wide", 180, "{ const d = app.state.view.duration, a = d * 0.8 * n; app.go(a, a + d / 10) }"},
	{"moving, a tenth of the run wide, with the critical path", 180,
		"{ const d = app.state.view.duration, a = d * 0.8 * n; app.stage.path.on = n < 0.99; app.go(a, a + d / 10) }"},
	{"moving over the rows, a tenth of the run wide", 120, "app.state.scroll(n < 0.5 ? 30 : -30)"},
}

func main() {
	var (
		millions = flag.Float64("regions", 5, "`millions` of regions")
		ranks    = flag.Int("ranks", 32, "`number` of ranks")
		tool     = flag.String("tool", "build/nccl-otf2", "`file` that is measured")
	)
	command := measure.NewCommand("timeline", "archive and page, 1 GB")
	command.Run(func() bool { return *millions > 0 && *ranks >= 2 },
		func(ctx context.Context, dir string) (measure.Findings, error) {
			o := &outcome{machine: measure.Machine(), Ranks: *ranks}
			return o, o.run(ctx, dir, *tool, uint64(*millions*1e6))
		})
}

// run makes archive and page in the folder, and looks at the page.
func (o *outcome) run(ctx context.Context, work, tool string, regions uint64) error {
	per := jobtest.NewLarge(1, o.Ranks) // for its proportions
	s := jobtest.NewLarge(regions*per.Events()/per.Regions(), o.Ranks)
	s.Jitter = true
	archive, err := s.Write(filepath.Join(work, "archive"))
	if err != nil {
		return err
	}
	o.Regions, o.Events, o.Transfers = s.Regions(), s.Events(), s.Transfers()
	page := filepath.Join(work, "page.html")
	cmd := exec.CommandContext(ctx, tool, "timeline", archive, "-o", page)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return err
	}
	o.Make = time.Since(began).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.MakeRSS = usage.Maxrss << 10
	}
	st, err := os.Stat(page)
	if err != nil {
		return err
	}
	o.Size = st.Size()
	fmt.Fprintf(os.Stderr, "page of %d MiB made in %.1f s, %d MiB\n", o.Size>>20, o.Make, o.MakeRSS>>20)
	if err := o.serve(ctx, tool, archive); err != nil {
		return err
	}
	return o.look(ctx, "file://"+page)
}

// serve lets the tool serve the archive, until it is there.
func (o *outcome) serve(ctx context.Context, tool, archive string) (err error) {
	cmd := exec.CommandContext(ctx, tool, "timeline", archive, "--serve")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		if ended := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err == nil {
			err = ended
		}
	}()
	for lines := bufio.NewScanner(out); !strings.Contains(lines.Text(), " regions in "); { // the address comes first
		if !lines.Scan() {
			return errors.New("the tool does not say what it serves")
		}
	}
	o.Serve = time.Since(began).Seconds()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return err
	}
	for name, at := range map[string]*int64{"VmHWM": &o.ServePeak, "VmRSS": &o.ServeRSS} {
		_, rest, _ := strings.Cut(string(status), name+":")
		if _, err := fmt.Sscan(rest, at); err != nil {
			return fmt.Errorf("%s in /proc: %w", name, err)
		}
		*at <<= 10
	}
	fmt.Fprintf(os.Stderr, "served after %.1f s, %d MiB at most, then %d MiB\n", o.Serve, o.ServePeak>>20,
		o.ServeRSS>>20)
	return nil
}

// look opens the page and moves about in it.
func (o *outcome) look(ctx context.Context, url string) error {
	b, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	began := time.Now()
	p, err := b.Open(url, browser.Options{Width: 1440, Height: 900, Timeout: 3 * time.Minute})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))",
		nil); err != nil {
		return err
	}
	o.Open = time.Since(began).Seconds()
	var bars uint64
	if err := p.Eval("window.__timeline.store.head.totals.bars", &bars); err != nil {
		return err
	}
	if bars != o.Regions {
		return fmt.Errorf("the page has %d regions, the archive %d", bars, o.Regions)
	}
	if err := p.Eval("window.__timeline.state.rows.setAll(true), window.__timeline.stage.resize()",
		nil); err != nil { // all rows are open
		return err
	}
	for _, m := range movements {
		f := frame{Name: m.name}
		before, err := p.Processor()
		if err != nil {
			return err
		}
		err = p.Eval(fmt.Sprintf(`new Promise((done) => {
			const app = window.__timeline, times = [], apart = [];
			let i = 0, last = 0;
			const step = (now) => {
				if (last > 0) apart.push(now - last);
				last = now;
				if (i > 0) times.push(app.stage.frames.at(-1)); // drawn just before, as what follows had asked for it
				if (i === %[1]d) {
					times.sort((a, b) => a - b);
					apart.sort((a, b) => a - b);
					done({ count: times.length, median_ms: times[times.length >> 1], p99_ms: times[Math.ceil(0.99 * times.length) - 1], max_ms: times.at(-1), apart_ms: apart[apart.length >> 1], boxes: app.stage.painted.boxes.length });
					return;
				}
				const n = i++ / %[1]d;
				%[2]s;
				requestAnimationFrame(step);
			};
			requestAnimationFrame(step);
		})`, m.steps, m.step), &f)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		after, err := p.Processor()
		if err != nil {
			return err
		}
		f.Name, f.CPU = m.name, 1000*(after-before)/float64(f.Count)
		fmt.Fprintf(
			os.Stderr,
			"%s: %.1f ms, 99 of 100 below %.1f ms, %.1f at most %.1f apart, %.1f ms of the processor (%d bars)\n",
			f.Name, f.Median, f.P99, f.Max, f.Interval, f.CPU, f.Boxes)
		o.Frames = append(o.Frames, f)
	}
	if errs := p.Errors(); len(errs) > 0 {
		return fmt.Errorf("the page complains: %q", errs)
	}
	return nil
}

// Page shows the movements as a table.
func (o *outcome) Page() *measure.Page {
	heading := fmt.Sprintf(
		"%s. %s million regions (%s million events) and %s million transfers of %d ranks: the page is %d MiB (%s "+
			"bytes per region), made in %s s with %d MiB of memory, and shows its first picture %s s after it is "+
			"opened. With --serve it is there in %s s, with %d MiB at most, and then %d MiB. ",
		o.machine, measure.Digits(float64(o.Regions)/1e6), measure.Digits(float64(o.Events)/1e6),
		measure.Digits(float64(o.Transfers)/1e6), o.Ranks, o.Size>>20,
		measure.Digits(float64(o.Size)/float64(o.Regions)), measure.Digits(o.Make), o.MakeRSS>>20,
		measure.Digits(o.Open),
		measure.Digits(o.Serve), o.ServePeak>>20, o.ServeRSS>>20)
	heading += fmt.Sprintf(
		"Pictures of 1440 × 900 pixels in headless Chromium, which draws with the processor; what the page's program "+
			"takes for one. Where others use the machine only the processor's time says something; it has unpacking "+
			"and laying out in it. Aims: median %.0f ms, 99 of 100 below %.0f ms.", frameAim, frameMax)
	t := measure.Table{Figures: true, Columns: []string{"movement", "pictures", "median, ms", "99 of 100 below, ms",
		"longest, ms", "apart, median, ms", "processor, mean, ms"}}
	for _, f := range o.Frames {
		t.Rows = append(t.Rows, []string{f.Name, fmt.Sprint(f.Count), measure.Digits(f.Median), measure.Digits(f.P99),
			measure.Digits(f.Max), measure.Digits(f.Interval), measure.Digits(f.CPU)})
	}
	return &measure.Page{Heading: heading, Tables: []measure.Table{t}}
}
