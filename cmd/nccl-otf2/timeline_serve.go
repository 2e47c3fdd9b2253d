// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/timeline"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// serveTimeline starts serving the page of an archive at once, and reads the archive meanwhile. damage is the archive's
// known damage.
func serveTimeline(cmd *cobra.Command, a *otf2.Archive, damage error, q *timelineRequest) error {
	s, err := timeline.NewServer(archiveTitle(a.Path()))
	if err != nil {
		return err
	}
	l, err := s.Listen(q.port)
	if err != nil {
		return err
	}
	// Catch signals before printing the address: whoever has it may end the server at once.
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, unix.SIGTERM)
	defer signal.Stop(end)
	out := cmd.OutOrStdout()
	printable.Fprintf(out, "%s\n  Only this machine can reach it, and only with this address. Ctrl-C ends it.\n",
		paint(out, bold, s.URL()))
	read := make(chan filled, 1)
	go func() { read <- fillServer(s, a, damage, q) }()
	var failed error
	ended := make(chan bool) // closed when reading has ended
	go func() {
		defer func() { _ = l.Close() }()
		defer close(ended)
		select {
		case <-end:
			return // a goroutine that is still reading ends with the tool
		case f := <-read:
			if failed = f.err; failed == nil {
				printable.Fprintf(out, "  %s\n", f.what)
				failed = f.problems(out)
				<-end
			}
		}
	}()
	err = s.Serve(l)
	<-ended
	switch {
	case failed != nil:
		return failed
	case errors.Is(err, net.ErrClosed):
		return nil
	}
	return err
}

// filled describes what a served page contains, or why there is none.
type filled struct {
	what     string
	problems func(out io.Writer) error // prints what the page lacks
	err      error
}

// fillServer reads an archive into the server's page.
func fillServer(s *timeline.Server, a *otf2.Archive, damage error, q *timelineRequest) filled {
	p := newProgress()
	defer p.clearLine()
	tell := func(what string, done, total uint64) {
		s.Say(what, done, total)
		if total > 0 {
			p.showLine("%s: %d of %d", what, done, total)
		} else {
			p.showLine("%s", what)
		}
	}
	d, err := readTimeline(a, q.spec, tell)
	if err != nil {
		s.Fail(err)
		return filled{err: err}
	}
	d.Damage(damage)
	// for an empty archive, the page itself says so
	if err := emptyPageError(a, d, q.spec); err != nil && len(d.Problems()) > 0 {
		_ = d.Close()
		s.Fail(err)
		return filled{err: err}
	}
	what := d.String()
	for _, problem := range d.Problems() {
		what += "\n  ! " + oneLine(problem)
	}
	err = s.Fill(d, timeline.Options{Title: archiveTitle(a.Path()), Tool: creator(), Progress: func(done, total int) {
		tell("Writing", uint64(done), uint64(total))
	}})
	_ = d.Close()        // the server has all it needs
	debug.FreeOSMemory() // it may run for days
	return filled{what, func(out io.Writer) error { return printDamage(out, d) }, err}
}
