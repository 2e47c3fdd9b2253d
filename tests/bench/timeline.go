// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

// Aims for a picture: what a screen of 60 Hz leaves, and what still looks as if it moved.
const (
	frameAim = 16.0 // ms, median
	frameMax = 33.0 // ms, 99 of 100
)

// timeline measures the timeline's page: how long it takes to make one of an archive that is made here, how large it
// is, and how long the page takes to open and to draw in a headless Chromium, which draws with the processor.
type timeline struct {
	*bench
	millions float64
	ranks    int

	regions   uint64
	made      taken
	size      int64
	serve     float64 // seconds until it is there
	servePeak int64   // bytes
	serveRSS  int64   // from then on
	open      float64 // seconds until the first picture
	frames    *Table
}

// frame is what pictures took in one movement.
type frame struct {
	Count    int     `json:"count"`
	Median   float64 `json:"median_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	Interval float64 `json:"apart_ms"` // from one picture to the next, median
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

func prepareTimeline(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error) {
	b.rounds, b.scale = 1, 1
	t := &timeline{bench: b, frames: &Table{Figures: true, Columns: []string{"movement", "pictures", "median, ms",
		"99 of 100 below, ms", "longest, ms", "apart, median, ms", "processor, mean, ms"}}}
	flags.Float64Var(&t.millions, "regions", 5, "`millions` of regions")
	flags.IntVar(&t.ranks, "ranks", 32, "`number` of ranks")
	return t.measure
}

// measure makes archive and page, and looks at the page.
func (t *timeline) measure(ctx context.Context) (*Page, error) {
	heading := machine()
	per := jobtest.NewLarge(1, t.ranks) // for its proportions
	s := jobtest.NewLarge(uint64(t.millions*1e6)*per.Events()/per.Regions(), t.ranks)
	s.Jitter = true
	archive, err := s.Write(t.newRun())
	if err != nil {
		return nil, err
	}
	t.regions = s.Regions()
	page := filepath.Join(t.dir, "page.html")
	if t.made, err = t.runTool(ctx, nil, "timeline", archive, "-o", page); err != nil {
		return nil, err
	}
	st, err := os.Stat(page)
	if err != nil {
		return nil, err
	}
	t.size = st.Size()
	if err := t.serveArchive(ctx, archive); err != nil {
		return nil, err
	}
	if err := t.look(ctx, "file://"+page); err != nil {
		return nil, err
	}
	return &Page{Tables: []*Table{t.frames}, Heading: fmt.Sprintf(
		"%s. %s million regions (%s million events) and %s million transfers of %d ranks: the page is %d MiB (%s "+
			"bytes per region), made in %s s with %d MiB of memory, and shows its first picture %s s after it is "+
			"opened. With --serve it is there in %s s, with %d MiB at most, and then %d MiB. Pictures of 1440 × 900 "+
			"pixels in headless Chromium, which draws with the processor; what the page's program takes for one. "+
			"Where others use the machine only the processor's time says something; it has unpacking and laying out "+
			"in it. Aims: median %.0f ms, 99 of 100 below %.0f ms.",
		heading, digits(float64(t.regions)/1e6), digits(float64(s.Events())/1e6), digits(float64(s.Transfers())/1e6),
		t.ranks, t.size>>20, digits(float64(t.size)/float64(t.regions)), digits(t.made.wall.Seconds()),
		t.made.rss>>20, digits(t.open), digits(t.serve), t.servePeak>>20, t.serveRSS>>20, frameAim, frameMax)}, nil
}

// serveArchive lets the tool serve the archive, until it is there.
func (t *timeline) serveArchive(ctx context.Context, archive string) (err error) {
	cmd := t.tool(ctx, "timeline", archive, "--serve")
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
	t.serve = time.Since(began).Seconds()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return err
	}
	for name, at := range map[string]*int64{"VmHWM": &t.servePeak, "VmRSS": &t.serveRSS} {
		_, rest, _ := strings.Cut(string(status), name+":")
		if _, err := fmt.Sscan(rest, at); err != nil {
			return fmt.Errorf("%s in /proc: %w", name, err)
		}
		*at <<= 10
	}
	return nil
}

// look opens the page and moves about in it.
func (t *timeline) look(ctx context.Context, url string) error {
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
	t.open = time.Since(began).Seconds()
	var bars uint64
	if err := p.Eval("window.__timeline.store.head.totals.bars", &bars); err != nil {
		return err
	}
	if bars != t.regions {
		return fmt.Errorf("the page has %d regions, the archive %d", bars, t.regions)
	}
	if err := p.Eval("window.__timeline.state.rows.setAll(true), window.__timeline.stage.resize()",
		nil); err != nil { // all rows are open
		return err
	}
	for _, m := range movements {
		say("%s", m.name)
		var f frame
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
					done({ count: times.length, median_ms: times[times.length >> 1], p99_ms: times[Math.ceil(0.99 * times.length) - 1], max_ms: times.at(-1), apart_ms: apart[apart.length >> 1] });
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
		t.frames.Rows = append(t.frames.Rows, []string{m.name, fmt.Sprint(f.Count), digits(f.Median), digits(f.P99),
			digits(f.Max), digits(f.Interval), digits(1000 * (after - before) / float64(f.Count))})
	}
	if errs := p.Errors(); len(errs) > 0 {
		return fmt.Errorf("the page complains: %q", errs)
	}
	return nil
}
