// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
)

// pending are the files and folders that are removed when a signal ends the program.
var pending = struct {
	sync.Mutex
	on      bool // somebody wants them removed
	paths   map[string]bool
	signals chan os.Signal // not nil while there are paths
}{paths: make(map[string]bool)}

// RemoveOnSignals makes SIGINT, SIGTERM and SIGHUP remove what is unfinished before they end the program, as they do.
// It is not for programs that handle these signals themselves.
func RemoveOnSignals() {
	pending.Lock()
	defer pending.Unlock()
	pending.on = true
}

// Pending is a folder that is removed with all that is in it when a signal ends the program.
type Pending struct{ forget func() }

// Temporary makes a folder one, which need not be there yet.
func Temporary(path string) *Pending { return &Pending{remember(path)} }

// Forget ends that. It may be called twice.
func (p *Pending) Forget() { p.forget() }

// Uninterrupted lets no such signal end the program before do has returned. do must make no files of this package.
func (p *Pending) Uninterrupted(do func() error) error {
	pending.Lock()
	defer pending.Unlock()
	return do()
}

func remember(path string) (forget func()) {
	path, err := filepath.Abs(path)
	if err != nil {
		return func() {}
	}
	pending.Lock()
	defer pending.Unlock()
	pending.paths[path] = true
	if pending.on && pending.signals == nil {
		pending.signals = make(chan os.Signal, 1)
		for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(s) { // under nohup
				signal.Notify(pending.signals, s)
			}
		}
		go removeOn(pending.signals)
	}
	return func() {
		pending.Lock()
		defer pending.Unlock()
		if delete(pending.paths, path); len(pending.paths) == 0 && pending.signals != nil {
			signal.Stop(pending.signals)
			close(pending.signals)
			pending.signals = nil
		}
	}
}

func removeOn(signals chan os.Signal) {
	s, ok := <-signals
	if !ok {
		return
	}
	pending.Lock() // for good: nothing new begins
	for path := range pending.paths {
		_ = os.RemoveAll(path)
	}
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
}
