// SPDX-License-Identifier: Apache-2.0

package cuda

import "strings"

// nameBytes is the part of a kernel's name that is looked at: templates of applications may name NCCL further on.
const nameBytes = 64

// IsNCCLKernel reports whether a kernel is NCCL's, RCCL's or MSCCL's, by its name, demangled or not: ncclDevKernel_…,
// ncclSymkDevKernel_…, before 2.18 ncclKernel_….
func IsNCCLKernel(name string) bool {
	name = name[:min(len(name), nameBytes)]
	_, after, isNCCL := strings.Cut(name, "nccl")
	return isNCCL && strings.Contains(after, "Kernel") || strings.Contains(name, "mscclKernel")
}

// KernelFunction returns the function in the name of a kernel of NCCL: "AllReduce" of
// ncclDevKernel_AllReduce_Sum_f32_RING_LL; "" if there is none. Only a "Generic" kernel can carry out other functions
// than its name's.
func KernelFunction(name string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	_, name, _ = strings.Cut(name, "Kernel_")
	return name[:len(name)-len(strings.TrimLeft(name, letters))]
}
