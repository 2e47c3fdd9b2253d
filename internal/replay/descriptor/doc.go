// SPDX-License-Identifier: Apache-2.0

// Package descriptor defines the events of NCCL's profiler API as recordings have them: which types, states and
// descriptors are there?
package descriptor
