// SPDX-License-Identifier: Apache-2.0

// Command bench measures a part of the project and prints tables; scripts/bench.sh says which parts there are.
//
//	go run ./tests/bench PART                                  tables
//	go run ./tests/bench PART --update tests/bench/README.md     puts them into that page
//
// It needs what `make build` makes, and a C compiler.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/caller"
)

// bench is what all parts have in common.
type bench struct {
	root, build string
	dir         string // for what is recorded and made; removed at the end
	rounds      int    // how often each case is measured
	scale       float64
	match       *regexp.Regexp
	host        *caller.Host
	runs        int
}

// part is something that can be measured. prepare adds its flags, and gives what measures it.
type part struct {
	marker  string // of the tables' place in a page
	prepare func(b *bench, flags *flag.FlagSet) func(context.Context) (*Page, error)
}

var parts = map[string]part{
	"otf2":      {"bench", prepareOTF2},
	"callbacks": {"callbacks", prepareCallbacks},
	"peers":     {"peers", preparePeers},
	"real-nccl": {"real-nccl", prepareRealNCCL},
	"report":    {"report", prepareReport},
	"timeline":  {"timeline", prepareTimeline},
}

// limit is how long a single run of a job may take.
const limit = 5 * time.Minute

func main() {
	runChild()
	if len(os.Args) < 2 || parts[os.Args[1]].prepare == nil {
		exitOn(errors.New("name what to measure: otf2, callbacks, peers, real-nccl, report, timeline"))
	}
	p := parts[os.Args[1]]
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	b := new(bench)
	flags.StringVar(&b.root, "root", ".", "`folder` of the repository")
	flags.StringVar(&b.build, "build", "build", "`folder` with what make build makes")
	parent := flags.String(
		"dir", "", "`folder` for what is recorded (default /dev/shm if it has room, else the temporary folder)")
	update := flags.String("update", "", "put the tables into this Markdown `file`, between its markers")
	measure := p.prepare(b, flags)
	_ = flags.Parse(os.Args[2:]) // it ends the program where it fails
	if flags.NArg() > 0 || b.rounds < 1 || b.scale <= 0 {
		flags.Usage()
		os.Exit(2)
	}
	if *update != "" {
		_, err := splice(*update, p.marker, "") // before the minutes, not after them
		exitOn(err)
	}
	exitOn(b.run(*parent, func(ctx context.Context) error {
		page, err := measure(ctx)
		switch {
		case err != nil:
			return err
		case *update == "":
			fmt.Print(page.Text())
			return nil
		}
		text, err := splice(*update, p.marker, page.Markdown())
		if err != nil {
			return err
		}
		return os.WriteFile(*update, []byte(text), 0o644)
	}))
}

// addFlags adds the flags of parts that measure cases; rounds is how often, unless the command line says otherwise.
func (b *bench) addFlags(flags *flag.FlagSet, rounds int) {
	b.match, b.scale = regexp.MustCompile(""), 1
	flags.IntVar(&b.rounds, "rounds", rounds, "`number` of times that each case runs")
	flags.Float64Var(&b.scale, "scale", 1, "`factor` on how long cases take")
	flags.TextVar(b.match, "case", b.match, "only cases whose names match this `regexp`")
}

// run measures in a folder that is removed afterwards; without a parent it is in memory if there is room.
func (b *bench) run(parent string, measure func(context.Context) error) (err error) {
	const memory, room = "/dev/shm", 1 << 30
	var s unix.Statfs_t
	if parent == "" && unix.Statfs(memory, &s) == nil && s.Bavail*uint64(s.Bsize) >= room {
		parent = memory
	}
	if b.dir, err = os.MkdirTemp(parent, "nccl-otf2-bench-"); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() {
		time.Sleep(2 * time.Second) // for what ends by the context
		_ = os.RemoveAll(b.dir)
		os.Exit(130)
	})
	return errors.Join(measure(ctx), removeAll(b.dir))
}

// removeAll removes a folder in which the collector of a job that has ended may still write.
func removeAll(dir string) (err error) {
	for range 1000 {
		if err = os.RemoveAll(dir); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// buildHost builds the program that calls plugins, where it has not been built.
func (b *bench) buildHost() (err error) {
	if b.host == nil {
		b.host, err = caller.Build(b.root, b.build, b.dir)
	}
	return err
}

// newRun names a folder to record in.
func (b *bench) newRun() string {
	b.runs++
	return filepath.Join(b.dir, fmt.Sprintf("run-%d", b.runs))
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func exitOn(err error) {
	if err != nil {
		say("bench: %v", err)
		os.Exit(1)
	}
}

// runChild runs one case of package otf2 and exits if this process was started for that.
func runChild() {
	if len(os.Args) < 2 || os.Args[1] != childArgument {
		return
	}
	o, err := ourCase(os.Args[2:])
	exitOn(err)
	exitOn(json.NewEncoder(os.Stdout).Encode(o))
	os.Exit(0)
}
