// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"encoding/json"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// The archive of a job stores why the job did not continue: one property per culprit, with the same JSON as in
// reports, so that no shards are needed to answer.

// maxProperties limits the number of culprits in an archive.
const maxProperties = 64

// Values returns the values of an archive's property.Stopped properties.
func Values(culprits []verdict.Culprit) (values []string) {
	for i := range culprits[:min(len(culprits), maxProperties)] {
		if text, err := json.Marshal(&culprits[i]); err == nil {
			values = append(values, string(text))
		}
	}
	return values
}

// OfArchive returns the culprits that unify found, the worst first: ranks that kept the archive's job from continuing,
// or that called an operation with arguments that do not match.
func OfArchive(a *otf2.Anchor) []verdict.Culprit {
	all := []verdict.Culprit{}
	ps := property.Read(a)
	for _, value := range ps.Numbered(property.Stopped) {
		var c verdict.Culprit
		if json.Unmarshal([]byte(value), &c) == nil {
			all = append(all, c)
		}
	}
	return all
}
