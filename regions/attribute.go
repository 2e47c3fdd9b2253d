// SPDX-License-Identifier: Apache-2.0

package regions

import "github.com/nccl-otf2/nccl-otf2/otf2"

// Attributes of operations, calls, kernels and transfers. Their values are those of NCCL's event descriptors
// (docs/nccl-profiler-api.md §2.5, §4.3) and of CUPTI's records (docs/gpu.md).

// Attribute is one row of the table of attribute definitions.
type Attribute struct {
	Ref         otf2.AttributeRef
	Name        string
	Type        otf2.Type
	Description string
}
