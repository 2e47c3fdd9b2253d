// SPDX-License-Identifier: Apache-2.0

// Skipped tells what tests left out, which go test says nothing of without -v.
//
//	go test -json ./... | skipped -add FILE [-except TEXT]    writes what go test writes without -json, and adds to FILE what was left
//	                                                          out, and why, but for the reasons that have TEXT in them
//	skipped -list FILE [LOG…]                                 lists what is in FILE, and what lines of the outputs of other steps say was left out
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	add := flag.String("add", "", "`file` to add to what tests left out")
	list := flag.String("list", "", "`file` whose lines are listed, with those of the logs named as arguments")
	except := flag.String("except", "", "`text` of reasons that are not added: another run does not leave out the same")
	flag.Parse()
	err := errors.New("give -add FILE or -list FILE")
	switch {
	case *add != "" && *list == "" && flag.NArg() == 0:
		err = addTo(*add, *except)
	case *list != "" && *add == "":
		err = writeList(os.Stdout, *list, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(1)
	}
}

func addTo(path, except string) error {
	skipped, err := relay(os.Stdin, os.Stdout)
	skipped = slices.DeleteFunc(skipped, func(line string) bool {
		return except != "" && strings.Contains(line, except)
	})
	if len(skipped) == 0 {
		return err
	}
	f, openErr := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	_, writeErr := io.WriteString(f, strings.Join(skipped, "\n")+"\n") // at once: other steps append, too
	return errors.Join(err, writeErr, f.Close())
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// tested is what a package's tests have written so far.
type tested struct {
	lines []string            // that go test would write
	held  map[string][]string // of tests that have not ended
}

// leftOut finds lines of tests and steps that say that something was not tested.
var leftOut = regexp.MustCompile(
	`\b(SKIPPED|NOT (TESTED|CHECKED|RUN|INSTALLED))\b|^\s*--- SKIP|^\s*(#|ℹ) skipped [1-9]`)

// place is where a test said a line.
var place = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)

// relay writes what go test would write of its events: of each package the outputs of failed tests, and the line that
// sums it up. It gives what was left out, a line for each test, or line of a test that did not leave out all.
func relay(in io.Reader, out io.Writer) (skipped []string, err error) {
	packages, failed := make(map[string]*tested), false
	lines := bufio.NewReader(in)
	for {
		line, readErr := lines.ReadString('\n')
		var e event
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &e) != nil:
			_, err = io.WriteString(out, line) // of go, or of a program that go test does not wait for
		case e.Package == "":
			_, err = io.WriteString(out, e.Output) // of a build
		default:
			if packages[e.Package] == nil {
				packages[e.Package] = &tested{held: make(map[string][]string)}
			}
			p := packages[e.Package]
			skipped = append(skipped, p.take(&e)...)
			if e.Test == "" && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
				_, err = io.WriteString(out, strings.Join(p.lines, ""))
				delete(packages, e.Package)
				failed = failed || e.Action == "fail"
			}
		}
		if err != nil {
			return skipped, err
		}
		if readErr != nil {
			break
		}
	}
	for _, p := range packages { // go test was ended
		p.take(&event{Action: "fail"})
		_, err = io.WriteString(out, strings.Join(p.lines, ""))
	}
	if failed {
		_, err = io.WriteString(out, "FAIL\n") // go test -json leaves it out
	}
	return skipped, err
}

// take takes an event, and gives what it says was left out.
func (p *tested) take(e *event) (skipped []string) {
	switch e.Action {
	case "output":
		switch {
		case strings.HasPrefix(strings.TrimSpace(e.Output), "=== "):
		case e.Test != "":
			p.held[e.Test] = append(p.held[e.Test], e.Output)
		case e.Output != "PASS\n":
			p.lines = append(p.lines, e.Output)
		}
		return nil
	case "fail":
		for test, lines := range p.held { // of a package: tests that had not ended, too
			if test == e.Test || e.Test == "" {
				p.lines = append(slices.Clone(lines), p.lines...)
				delete(p.held, test)
			}
		}
	case "pass", "skip":
		what := strings.TrimSpace(e.Package + " " + e.Test)
		var said []string
		for _, line := range p.held[e.Test] {
			if text := strings.TrimSpace(place.ReplaceAllString(line, "")); text == "" ||
				strings.HasPrefix(text, "--- ") {
				continue
			} else if e.Action == "skip" {
				said = append(said, text)
			} else if leftOut.MatchString(text) {
				skipped = append(skipped, what+": "+text)
			}
		}
		if e.Action == "skip" && e.Test != "" {
			skipped = append(skipped, what+": "+strings.Join(said, " "))
		}
		delete(p.held, e.Test)
	}
	return skipped
}

// writeList lists what was left out, each line once.
func writeList(w io.Writer, path string, logs []string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			if leftOut.MatchString(line) {
				all = append(all, strings.TrimSpace(place.ReplaceAllString(line, "")))
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "nothing was skipped")
		return err
	}
	_, err = fmt.Fprintf(w, "skipped: %d\n  %s\n", len(all), strings.Join(all, "\n  "))
	return err
}
