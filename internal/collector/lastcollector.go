// SPDX-License-Identifier: Apache-2.0

package collector

import "github.com/nccl-otf2/nccl-otf2/internal/experiment"

// maxUnifyLocations is how many locations a collector unifies by itself. Each further thousand takes seconds, on a
// machine that may be needed for something else.
const maxUnifyLocations = 2000

// isLast reports whether all processes of the job have finished their shards, which have few enough locations to be
// unified here.
func isLast(directory string) (bool, error) {
	entries, ended, err := experiment.ListIfEnded(directory) // when a large job ends all ask
	if err != nil || !ended || !experiment.Complete(entries) {
		return false, err
	}
	locations := 0
	for _, e := range entries {
		if e.Process != nil && !e.Process.IsProfile() { // profiles are made in no time
			locations += len(e.Process.Locations)
		}
	}
	return locations <= maxUnifyLocations, nil
}
