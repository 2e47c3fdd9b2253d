// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Command is what the benchmarks' command lines have in common: where they work, and how they say what they found.
type Command struct {
	marker         string // of the tables' place in a page
	dir, update    string
	json, markdown bool
}

// Findings are written as JSON, or as the page that they fill.
type Findings interface{ Page() *Page }

// NewCommand adds the flags that all benchmarks have. marker names the place of the tables in a page, room says what
// the benchmark keeps in its folder, and how much that is.
func NewCommand(marker, room string) *Command {
	c := &Command{marker: marker}
	flag.StringVar(
		&c.dir, "dir", "", "`folder` for "+room+" (default /dev/shm if it has room, else the temporary folder)")
	flag.BoolVar(&c.json, "json", false, "print JSON")
	flag.BoolVar(&c.markdown, "markdown", false, "print the tables in Markdown")
	flag.StringVar(&c.update, "update", "", "put the tables into this Markdown `file`, between its "+marker+" markers")
	return c
}

// Run reads the command line, runs the benchmark in a folder that is removed afterwards, and writes what it found. The
// program ends with status 2 where valid says that the flags are of no use, and with 1 where anything fails.
func (c *Command) Run(valid func() bool, benchmark func(ctx context.Context, dir string) (Findings, error)) {
	flag.Parse()
	if flag.NArg() > 0 || !valid() {
		flag.Usage()
		os.Exit(2)
	}
	if c.update != "" {
		_, err := splice(c.update, c.marker, "") // before the minutes, not after them
		ExitOn(err)
	}
	work, err := workFolder(c.dir)
	ExitOn(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		time.Sleep(2 * time.Second) // for what ends by the context
		_ = os.RemoveAll(work)
		os.Exit(130)
	})
	found, err := benchmark(ctx, work)
	if removed := os.RemoveAll(work); err == nil {
		err = removed
	}
	ExitOn(err)
	ExitOn(c.write(found))
}

func (c *Command) write(found Findings) error {
	switch {
	case c.update != "":
		text, err := splice(c.update, c.marker, found.Page().Markdown())
		if err != nil {
			return err
		}
		return os.WriteFile(c.update, []byte(text), 0o644)
	case c.json:
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return e.Encode(found)
	case c.markdown:
		fmt.Print(found.Page().Markdown())
	default:
		fmt.Print(found.Page().Text())
	}
	return nil
}

// ExitOn ends the program if there is an error.
func ExitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
