// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"syscall"
)

// announcedSuffix ends the names of files in Folder that are there when what became of a job's recording has been said.
const announcedSuffix = ".announced"

// FirstToAnnounce tells that nobody of a job, by its name or its step's, has said yet what became of its recording in
// an experiment directory, which is made if it is not there. It is so for one caller only, on whatever machines the
// others are; for none where it cannot be noted.
func FirstToAnnounce(directory, job string) bool {
	shards, err := openShards(directory)
	if err != nil {
		return false
	}
	defer shards.Close()
	f, err := shards.OpenFile(job+announcedSuffix, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, FileMode)
	return err == nil && f.Close() == nil
}
