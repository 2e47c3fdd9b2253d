// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"

	"ncclotf2/config"
	"ncclotf2/plugin/shm"
	"ncclotf2/regular"
	"ncclotf2/shard"
)

// convertedSuffix is added to the name of a spool file that has become a shard.
const convertedSuffix = ".done"

// Convert makes a shard in the experiment directory of a spool file, which it then renames. A file that
// is cut off gives a shard with all that is whole in it. If it fails it leaves the file as it was, and no
// shard.
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
	settings, launcher := spooled(spool)
	r, err := newRecording(spool, settings, launcher, experiment)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.store.Remove()
			err = fmt.Errorf("%s: %w", spoolFile, err)
		}
	}()
	for {
		round, err := spool.Refresh()
		if err != nil {
			return err
		}
		if round.Ended {
			r.line.add(round.Clock)
			r.takeRest()
			break
		}
		// The program's clock says nothing of what other threads may still record: all at the end.
		if !r.line.host {
			r.advanceTo(round.Clock)
		}
		if r.failed != nil {
			return r.failed
		}
	}
	if cut := spool.Cut(); cut != "" {
		r.markers = append(r.markers, shard.Marker{
			Time: r.given, Severity: severityHigh, Category: "NCCL spool file", Location: -1, Text: "the raw file ends early: " + cut,
		})
	}
	if err := r.finish(true); err != nil {
		return err
	}
	return os.Rename(spoolFile, spoolFile+convertedSuffix)
}

// spooled gives the settings that a spool file's header tells of.
func spooled(s *shm.Spool) (*config.Settings, config.Launcher) {
	h := s.Header()
	return config.Recorded(map[string]string{
		"EVENTS": config.EventList(h.RecordMask), "METRICS": "on", "COLLECTOR": "spool", "CLOCK": h.ClockSource.String(),
	}), config.Launcher{Rank: -1, Size: -1}
}
