// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"io"

	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// Played is what is known of a process beside its raw file.
type Played struct {
	Launcher    config.Launcher
	Settings    *config.Settings  // of these, those that say what is made of events: raw events, channels, metrics
	Environment map[string]string // as far as it is known
}

// Play makes a shard in the experiment directory of a whole raw file, of size bytes, whose process is over. It does as
// Convert, but looks for nothing on this machine.
func Play(raw io.Reader, size int64, directory string, of *Played) (err error) {
	spool, err := shm.OpenSpool(raw, size)
	if err != nil {
		return err
	}
	h := spool.Header()
	settings := config.RecordedSettings(statedSettings(&h))
	settings.Raw, settings.Channels, settings.Metrics = of.Settings.Raw, of.Settings.Channels, of.Settings.Metrics
	r, err := newRecording(spool, settings, of.Launcher, directory, spooledShard(&h))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.shard.store.Remove()
			err = fmt.Errorf("process %d: %w", h.PID, err)
		}
	}()
	r.shard.process.LibrarySettings = hidden.Settings(func(name string) (value string, set bool) {
		value, set = of.Environment[name]
		return value, set
	})
	if err := r.drainSpool(spool); err != nil {
		return err
	}
	r.shard.end = &description.End{Called: spool.Orderly()}
	return r.finish(true)
}
