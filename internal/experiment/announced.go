// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"syscall"
)

// announcedSuffix is the suffix of files in Folder that mark jobs whose recording's outcome has been announced.
const announcedSuffix = ".announced"

// FirstToAnnounce reports whether the outcome of the recording of a job (its name or its step's) has not been announced
// yet in an experiment directory, which it creates if necessary. It returns true to one caller only, across machines,
// and false if that cannot be recorded.
func FirstToAnnounce(directory, job string) bool {
	shards, err := openShards(directory)
	if err != nil {
		return false
	}
	defer shards.Close()
	f, err := shards.OpenFile(job+announcedSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, FileMode)
	return err == nil && f.Close() == nil
}
