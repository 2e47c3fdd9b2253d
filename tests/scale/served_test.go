// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
)

var served = flag.Bool("served", false, "with -ranks: measure the timeline's page as it is served, and nothing else")

const servedCommand = "go test ./tests/scale -ranks 1024,10000 -served -page"

// looked is what is done in the page, and what it is waited for. Each is of another part of the run, so that nothing
// has been read before.
var looked = []struct{ name, do string }{
	{"all ranks in one picture, waiting", `app.ranks.toggle(true); await settled()`},
	{"waits and what caused them, of a tenth of the run",
		`document.getElementById("tab-waits").click(); await of(0.1, () => app.panel.waits.shown.from)`},
	{"critical path of a tenth of the run",
		`document.getElementById("tab-path").click(); await of(0.3, () => app.panel.path.shown?.from)`},
	{"matrix of waiting, of a tenth of the run",
		`await app.panel.matrix.show("waiting"); document.getElementById("tab-matrix").click(); await of(0.5, () => app.panel.matrix.shownFrom)`},
	{"matrix of transfers, of a tenth of the run (which has none)",
		`await app.panel.matrix.show("network"); await of(0.7, () => app.panel.matrix.shownFrom)`},
	{"by how much ranks were late, of a thousandth of the run (of 10000 ranks the page says that these are too many)", `
		app.go(0.62 * app.state.view.duration, 0.621 * app.state.view.duration);
		app.ranks.show("late", "rank");
		for (app.stage.draw(); app.ranks.pending; ) await new Promise((done) => setTimeout(done, 5));`},
	{"rows again, a tenth of the run",
		`app.ranks.show("waiting", "rank"); app.ranks.toggle(false); part(0.7); await settled()`},
	{"statistics of one rank, of a tenth of the run",
		`app.state.focusRow(app.store.head.ranks[3].row); select(0.2); if (!await app.ranges.sum()) throw new Error("it asks")`},
	{"operations of one rank, of a tenth of the run",
		`app.ranges.set(undefined); app.state.focusRow(-1); part(0.4); if (!await app.commands.list("rank:3")) throw new Error("it asks")`},
	{"until it asks: operations of all ranks, of a tenth of the run",
		`part(0.8); if (await app.commands.list("")) throw new Error("it does not ask")`},
	{"the first 20 000 of these, when it is told to read all", `await app.commands.list("", true)`},
	{"until it asks: statistics of all ranks, of a tenth of the run",
		`select(0.8); if (await app.ranges.sum()) throw new Error("it does not ask")`},
	{"statistics of all ranks, of a tenth of the run, when it is told to add up all",
		`document.querySelector("#range button").click(); while (!document.querySelector("#range table")) await new Promise((done) => setTimeout(done, 5))`},
	{"a selected part of a collective of all ranks",
		`app.ranges.set(undefined); document.querySelector("#answer .worst td:first-child button").click(); while (!app.state.selected) await new Promise((done) => setTimeout(done, 5)); await settled()`},
	{"a search by name", `app.commands.unselect(); app.finder.search("AllReduce rank 3"); await settled()`},
}

const helpers = `
	const settled = async () => {
		for (let calm = 0; calm < 2; calm += app.store.loading === 0 && app.stage.painted.coarse === 0 ? 1 : -calm) await new Promise((done) => requestAnimationFrame(done));
	};
	const begins = (at) => Math.round(app.state.view.duration * at);
	const part = (at) => app.go(begins(at), begins(at) + app.state.view.duration / 10);
	const select = (at) => app.ranges.set({ from: begins(at), to: begins(at) + app.state.view.duration / 10 });
	const of = async (at, from) => {
		const begin = begins(at);
		part(at);
		while (Math.abs((from() ?? -1) - begin) > 1) await new Promise((done) => setTimeout(done, 5));
	};`

// TestServed measures with -ranks and -served how soon the page of so many ranks is there, and answers.
func TestServed(t *testing.T) {
	if *many == "" || !*served {
		t.Log("nothing is measured without -ranks and -served")
		return
	}
	b, err := browser.Start(context.Background())
	testkit.Must(t, err)
	defer b.Close()
	rows := make([]string, len(looked)+4)
	head, rule := "| seconds, of the page's processor |", "|---|"
	for number := range strings.SplitSeq(*many, ",") {
		ranks := numberOf(t, number)
		dir := t.TempDir()
		jobtest.WriteTraining(t, dir, ranks, ranks/2+3)
		ask(t, dir, "unify", "DIR")
		head, rule = head+fmt.Sprintf(" %d ranks |", ranks), rule+"---|"
		look(t, b, dir, rows)
	}
	table := head + "\n" + rule + "\n"
	for i, name := range append([]string{"from the command to the address",
		"from the command until the archive has been read", "from the command to the first picture",
		"first picture, of an archive that has been read"}, namesOf()...) {
		table += "| " + name + " |" + rows[i] + "\n"
	}
	t.Log("\n" + table)
	if *page {
		putSection(t, "served", servedCommand, table)
	}
}

func namesOf() (names []string) {
	for _, l := range looked {
		names = append(names, l.name)
	}
	return names
}

// look serves an archive, opens its page, and adds to each row what was measured.
func look(t *testing.T, b *browser.Browser, dir string, rows []string) {
	t.Helper()
	tool, err := filepath.Abs("../../build/nccl-otf2")
	testkit.Must(t, err)
	cmd := exec.Command(tool, "timeline", dir, "--serve")
	out, err := cmd.StdoutPipe()
	testkit.Must(t, err)
	began := time.Now()
	testkit.Must(t, cmd.Start())
	defer func() {
		testkit.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		testkit.Must(t, cmd.Wait())
	}()
	var url string
	lines := bufio.NewScanner(out)
	said := func(what string) {
		t.Helper()
		for !strings.Contains(lines.Text(), what) {
			if !lines.Scan() {
				t.Fatalf("the tool does not say %q", what)
			}
			for word := range strings.FieldsSeq(lines.Text()) {
				if strings.HasPrefix(word, "http://") {
					url = word
				}
			}
		}
	}
	row := 0
	since := func() {
		rows[row] += fmt.Sprintf(" %.2f |", time.Since(began).Seconds())
		row++
	}
	said("Ctrl-C")
	since()
	first := make(chan float64, 1) // seconds from the command to a picture in a page that was opened at once
	go func() { first <- firstPicture(t, b, url, began) }()
	said("regions in")
	since()
	rows[row] += fmt.Sprintf(" %.2f |", <-first)
	p, err := b.Blank(browser.Options{Width: 1440, Height: 900, Timeout: 20 * time.Minute})
	testkit.Must(t, err)
	defer p.Close()
	at := row + 1
	measure := func(name string, do func() error) {
		t.Helper()
		before, err := p.Processor()
		testkit.Must(t, err)
		began := time.Now()
		testkit.Must(t, do())
		wall := time.Since(began).Seconds()
		after, err := p.Processor()
		testkit.Must(t, err)
		t.Logf("%s: %.2f s, %.2f of the page's processor", name, wall, after-before)
		rows[at] += fmt.Sprintf(" %.2f, %.2f |", wall, after-before)
		at++
	}
	measure("first picture", func() error {
		if err := p.Run(chromedp.Navigate(url)); err != nil {
			return err
		}
		return p.Eval(pictured, nil)
	})
	for _, l := range looked {
		measure(l.name, func() error {
			return p.Eval("(async (app) => {"+helpers+l.do+"; return 1; })(window.__timeline)", nil)
		})
	}
	if errs := p.Errors(); len(errs) > 0 {
		t.Errorf("the page complains: %q", errs)
	}
}

const pictured = `new Promise((done) => {
	const look = () => window.__timeline?.stage.frames.length > 0 || window.__failure ? requestAnimationFrame(() => done(true)) : setTimeout(look, 5);
	look();
})`

// firstPicture is how many seconds after a time a page shows the timeline that waits for it from now on, and loads
// itself again meanwhile.
func firstPicture(t *testing.T, b *browser.Browser, url string, began time.Time) float64 {
	p, err := b.Blank(browser.Options{Width: 1440, Height: 900, Timeout: 20 * time.Minute})
	if err != nil {
		t.Error(err)
		return 0
	}
	defer p.Close()
	if err := p.Run(chromedp.Navigate(url)); err != nil {
		t.Error(err)
	}
	for p.Err() == nil && p.Eval(pictured, nil) != nil { // what was asked of the page that waited is gone with it
		time.Sleep(20 * time.Millisecond)
	}
	if p.Err() != nil {
		t.Error(p.Err())
	}
	return time.Since(began).Seconds()
}
