// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"os"
)

// RecordStatus records how a process of this machine ended, in its shard of an experiment directory, if its collector
// could not know: its parent can. A process without a finished shard is ignored.
func RecordStatus(directory string, pid int, status uint32) error {
	entries, err := List(directory)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if p := e.Process; e.State == Done && p != nil && p.PID == pid && p.Host == host && p.End != nil &&
			p.End.Status == nil {
			p.End.Status = &status
			s, err := reopen(e.Path)
			if err != nil {
				return err
			}
			if err := errors.Join(s.rewrite(p), s.root.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}
