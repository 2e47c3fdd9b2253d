// SPDX-License-Identifier: Apache-2.0

package atomicfile

import (
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
)

// pending are the files and folders to remove when a signal ends the program.
var pending = struct {
	sync.Mutex
	on      bool // RemoveOnSignals was called
	paths   map[string]bool
	signals chan os.Signal // nil while there are no paths
}{paths: make(map[string]bool)}

// RemoveOnSignals makes SIGINT, SIGTERM and SIGHUP remove unfinished files before they end the program. Programs that
// handle these signals themselves must not call it.
func RemoveOnSignals() {
	pending.Lock()
	defer pending.Unlock()
	pending.on = true
}

// Pending is a folder that is removed with its content when a signal ends the program.
type Pending struct{ forget func() }

// Temporary makes a folder pending; it need not exist yet.
func Temporary(path string) *Pending { return &Pending{remember(path)} }

// Forget makes the folder permanent. It may be called twice.
func (p *Pending) Forget() { p.forget() }

// Uninterrupted delays such signals until do has returned. do must not use this package's files.
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
	pending.Lock() // never released: no new files begin
	for path := range pending.paths {
		_ = os.RemoveAll(path)
	}
	signal.Reset(s)
	_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
}
