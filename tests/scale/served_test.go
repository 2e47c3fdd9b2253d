// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"bufio"
	"context"
	_ "embed"
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

//go:embed served.js
var script string

// helpers are what all measurements in the page use, looked those: their names, and what is done.
var helpers, looked = func() (helpers string, parts [][2]string) {
	all := strings.Split(script, "\n//: ")
	for _, part := range all[1:] {
		name, do, _ := strings.Cut(part, "\n")
		parts = append(parts, [2]string{name, do})
	}
	return all[0], parts
}()

// TestServed measures with -ranks and -served how soon the page of so many ranks is there, and answers.
func TestServed(t *testing.T) {
	if *many == "" || !*served {
		t.Log("nothing is measured without -ranks and -served")
		return
	}
	b := testkit.Value(browser.Start(context.Background()))(t)
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
	names := []string{"from the command to the address", "from the command until the archive has been read",
		"from the command to the first picture", "first picture, of an archive that has been read"}
	for _, l := range looked {
		names = append(names, l[0])
	}
	for i, name := range names {
		table += "| " + name + " |" + rows[i] + "\n"
	}
	t.Log("\n" + table)
	if *page {
		putSection(t, "served", servedCommand, table)
	}
}

// look serves an archive, opens its page, and adds to each row what was measured.
func look(t *testing.T, b *browser.Browser, dir string, rows []string) {
	t.Helper()
	tool := testkit.Value(filepath.Abs("../../build/nccl-otf2"))(t)
	cmd := exec.Command(tool, "timeline", dir, "--serve")
	out := testkit.Value(cmd.StdoutPipe())(t)
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
			testkit.Require(t, lines.Scan(), "the tool does not say %q", what)
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
	p := testkit.Value(b.Blank(browser.Options{Width: 1440, Height: 900, Timeout: 20 * time.Minute}))(t)
	defer p.Close()
	at := row + 1
	measure := func(name string, do func() error) {
		t.Helper()
		before := testkit.Value(p.Processor())(t)
		began := time.Now()
		testkit.Must(t, do())
		wall := time.Since(began).Seconds()
		after := testkit.Value(p.Processor())(t)
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
		measure(l[0], func() error {
			return p.Eval("(async (app) => {"+helpers+"\n"+l[1]+"\nreturn 1; })(window.__timeline)", nil)
		})
	}
	errs := p.Errors()
	testkit.Check(t, len(errs) == 0, "the page complains: %q", errs)
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
	err = p.Run(chromedp.Navigate(url))
	testkit.Check(t, err == nil, "%v", err)
	for p.Err() == nil && p.Eval(pictured, nil) != nil { // what was asked of the page that waited is gone with it
		time.Sleep(20 * time.Millisecond)
	}
	testkit.Check(t, p.Err() == nil, "%v", p.Err())
	return time.Since(began).Seconds()
}
