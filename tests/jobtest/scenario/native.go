// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// NativeAPI is the version of the plugin interface that an NCCL release ("2.29.7") speaks without
// adapting: 1 (2.23), 2 (2.24, 2.25), 3 (2.26), 4 (2.27), 5 (2.28), 6 (2.29, 2.30), 7 (2.31 and later).
func NativeAPI(nccl string) (int, error) {
	release, err := replay.VersionCode(nccl)
	if err != nil {
		return 0, err
	}
	version := 1
	for _, v := range api.Versions {
		// A version came with a minor release, also where the table names a later patch of it.
		if since, err := replay.VersionCode(v.Release); err == nil && release/100 >= since/100 {
			version = v.Number
		}
	}
	return version, nil
}
