// SPDX-License-Identifier: Apache-2.0

package waitfor

import (
	"encoding/json"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/verdict"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// What kept a job from going on is in its archive: one property for each culprit, JSON as in reports, so that the
// answer needs no shards.

// maxProperties bounds how many culprits an archive names.
const maxProperties = 64

// Values are the values of an archive's properties facts.PropStopped.
func Values(culprits []verdict.Culprit) (values []string) {
	for i := range culprits[:min(len(culprits), maxProperties)] {
		if text, err := json.Marshal(&culprits[i]); err == nil {
			values = append(values, string(text))
		}
	}
	return values
}

// OfArchive is who kept an archive's job from going on, or asked for what does not fit together, as unify found; the
// worst first.
func OfArchive(a *otf2.Anchor) []verdict.Culprit {
	all := []verdict.Culprit{}
	ps := facts.PropertiesOf(a)
	for _, value := range ps.Numbered(facts.PropStopped) {
		var c verdict.Culprit
		if json.Unmarshal([]byte(value), &c) == nil {
			all = append(all, c)
		}
	}
	return all
}
