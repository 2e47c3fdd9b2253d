// SPDX-License-Identifier: Apache-2.0

// Slow links and GPUs as a table, as internal/analysis/transfers finds them.

package report

import (
	"fmt"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
)

var slowColumns = []column[waits.SlowRow]{
	label("what", "what", func(r *waits.SlowRow) string { return r.What }),
	label("rank", "rank", func(r *waits.SlowRow) string { return r.Name }),
	label("host", "host", func(r *waits.SlowRow) string { return r.Host }),
	label("gpu", "GPU", func(r *waits.SlowRow) string { return r.GPU }),
	label("peer", "to", func(r *waits.SlowRow) string { return r.PeerName }),
	label("peer_host", "on", func(r *waits.SlowRow) string { return r.PeerHost }),
	{"slow", "slow in", func(r *waits.SlowRow) string { return fmt.Sprintf("%d of %d", r.Slow, r.Operations) },
		func(r *waits.SlowRow) any { return r.Slow }},
	{"operations", "", nil, func(r *waits.SlowRow) any { return r.Operations }},
	meanTime("took_ns", "took", func(r *waits.SlowRow) float64 { return r.Took }),
	meanTime("usual_ns", "others", func(r *waits.SlowRow) float64 { return r.Usual }),
	meanTime("cost_ns", "cost", func(r *waits.SlowRow) float64 { return r.Cost }),
	percent("of operations' time", func(r *waits.SlowRow) (float64, float64) { return r.Share, 1 }),
	{"chance", "by chance", func(r *waits.SlowRow) string { return fmt.Sprintf("%.1g", r.Chance) },
		func(r *waits.SlowRow) any { return r.Chance }},
}
