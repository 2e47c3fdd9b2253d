// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"strconv"

	"github.com/google/uuid"

	"ncclotf2/config"
	"ncclotf2/plugin/shm"
	"ncclotf2/regular"
	"ncclotf2/shard"
)

// convertedSuffix is added to the name of a complete spool file that has become a shard.
const convertedSuffix = ".done"

// settingSpooled is the key of shard.Process.Settings that says how many bytes of a spool file a shard was made of, and
// settingWhole that the process had written all of them when it ended.
const (
	settingSpooled = "SPOOLED_BYTES"
	settingWhole   = "SPOOLED_WHOLE"
)

// Convert makes a shard in the experiment directory of a spool file. The same file always makes the same shard, so that
// whatever was in it before, and a conversion that was killed, is replaced and nothing is there twice. A file whose process has
// ended in order is renamed; any other one stays as it is, for its process may still be writing it. If Convert fails there is no shard.
//
// What the launcher said of the process is not in spool files.
func Convert(spoolFile, experiment string) (err error) {
	file, err := regular.OpenOwn(spoolFile)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	spool, err := shm.OpenSpool(file, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", spoolFile, err)
	}
	h := spool.Header()
	name := spooledShard(&h)
	size := strconv.FormatInt(info.Size(), 10)
	if before := shard.Find(experiment, name); before.State == shard.Done && before.Process != nil && before.Process.Settings[settingSpooled] == size {
		return converted(spoolFile, before.Process)
	}
	if err := shard.Remove(experiment, name); err != nil {
		return err
	}
	settings, launcher := spooled(spool)
	r, err := newRecording(spool, settings, launcher, experiment, name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.store.Remove()
			err = fmt.Errorf("%s: %w", spoolFile, err)
		}
	}()
	if err := r.takeSpool(spool); err != nil {
		return err
	}
	writing := !spool.Orderly() && (shard.Locked(file) || alive(&h))
	if cut := spool.Cut(); cut != "" && !writing {
		r.markers = append(r.markers, shard.Marker{
			Time: r.given, Severity: severityHigh, Category: "NCCL spool file", Location: -1, Text: "the raw file ends early: " + cut,
		})
	}
	if !writing {
		r.end = &shard.End{Called: spool.Orderly()}
	}
	r.process.Settings[settingSpooled], r.process.Settings[settingWhole] = size, strconv.FormatBool(spool.Orderly())
	if err := r.finish(!writing); err != nil {
		return err
	}
	if writing {
		// Its lock says of the shard, too, that there will be more. Without links it looks as if the process had been killed.
		_ = r.store.LockLike(spoolFile)
	}
	return converted(spoolFile, r.process)
}

// converted gives a spool file that is complete its name.
func converted(spoolFile string, p *shard.Process) error {
	if p.Settings[settingWhole] != "true" {
		return nil
	}
	return os.Rename(spoolFile, spoolFile+convertedSuffix)
}

// takeSpool takes all that a spool file has.
func (r *recording) takeSpool(spool *shm.Spool) error {
	for {
		round, err := spool.Refresh()
		if err != nil {
			return err
		}
		if round.Ended {
			r.line.add(round.Clock)
			r.takeRest()
			return nil
		}
		// The program's clock says nothing of what other threads may still record: all at the end.
		if !r.line.host {
			r.advanceTo(round.Clock)
		}
		if r.failed != nil {
			return r.failed
		}
	}
}

// spooledShard is the name of the shard that a process's spool file becomes.
func spooledShard(h *shm.Header) string {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %s %d %d %x %d", h.Host(), h.Boot(), h.PID, h.PIDStart, h.Tag, h.Created.Real)).String()
}

// alive says that the process is one of this machine, as this program sees it, and has not ended.
func alive(h *shm.Header) bool {
	if h.Boot() != bootID() {
		return false
	}
	start, err := shm.ProcessStart(int(h.PID))
	return err == nil && start == h.PIDStart
}

// spooled gives the settings that a spool file's header tells of.
func spooled(s *shm.Spool) (*config.Settings, config.Launcher) {
	h := s.Header()
	settings := toldSettings(&h)
	settings["COLLECTOR"] = "spool"
	return config.Recorded(settings), config.Launcher{Rank: -1, Size: -1}
}
