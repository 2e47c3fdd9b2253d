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
	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

var served = flag.Bool("served", false, "with -ranks: measure the timeline's page as it is served, and nothing else")

const servedCommand = "go test ./tests/scale -ranks 1024,10000 -served -page"

// looked is what is done in the page, and what it is waited for. Each is of another part of the run, so that nothing has been read before.
var looked = []struct{ name, do string }{
	{"all ranks in one picture, waiting", `app.ranks.toggle(true); await settled()`},
	{"waits and what they go back to, of a tenth of the run", `document.getElementById("tab-waits").click(); await of(0.1, () => app.waitsShown.from)`},
	{"critical path of a tenth of the run", `document.getElementById("tab-path").click(); await of(0.3, () => app.pathSums?.from)`},
	{"matrix of waiting, of a tenth of the run", `await app.matrix.show("waiting"); document.getElementById("tab-matrix").click(); await of(0.5, () => app.matrix.shownFrom)`},
	{"rows again, a tenth of the run", `app.ranks.toggle(false); await settled()`},
}

const helpers = `
	const settled = async () => {
		for (let calm = 0; calm < 2; calm += app.store.loading === 0 && app.painted.coarse === 0 ? 1 : -calm) await new Promise((done) => requestAnimationFrame(done));
	};
	const of = async (at, from) => {
		const begin = Math.round(app.view.duration * at);
		app.go(begin, begin + app.view.duration / 10);
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
	rows := make([]string, len(looked)+2)
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
	for i, name := range append([]string{"from the command to the address", "first picture"}, namesOf()...) {
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
	url := ""
	lines := bufio.NewScanner(out)
	for !strings.Contains(lines.Text(), "Ctrl-C") {
		if !lines.Scan() {
			t.Fatal("the tool does not say where it serves")
		}
		for word := range strings.FieldsSeq(lines.Text()) {
			if strings.HasPrefix(word, "http://") {
				url = strings.TrimRight(word, ".,:")
			}
		}
	}
	rows[0] += fmt.Sprintf(" %.2f |", time.Since(began).Seconds())
	p, err := b.Blank(browser.Options{Width: 1440, Height: 900, Timeout: 10 * time.Minute})
	testkit.Must(t, err)
	defer p.Close()
	at := 1
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
		return p.Eval(`new Promise((done) => {
			const look = () => window.__timeline?.frames.length > 0 || window.__failure ? requestAnimationFrame(() => done(true)) : setTimeout(look, 5);
			look();
		})`, nil)
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
