// SPDX-License-Identifier: Apache-2.0

package description

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Metric is a set of quantities that events record together, at any time (OTF2: asynchronous).
type Metric struct {
	Members []MetricMember `json:"members"`
	// Recorder is the kind of locations that record it, each of itself; RecorderKindAbstract if one location
	// records it on behalf of a GPU.
	Recorder otf2.RecorderKind `json:"recorder"`
	// Location is that one location's number (KindGPUMetrics), GPU an index into Process.GPUs; −1 without.
	Location int `json:"location"`
	GPU      int `json:"gpu"`
	// Locations are those that have recorded it, where each does so of itself.
	Locations []uint32 `json:"locations,omitempty"`
}

// MetricMember is one quantity. A value v means v · 10^Exponent of the unit.
type MetricMember struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        otf2.Type       `json:"type"` // of values: UINT64 or DOUBLE
	Mode        otf2.MetricMode `json:"mode"`
	Exponent    int64           `json:"exponent,omitempty"`
	Unit        string          `json:"unit"`
}
