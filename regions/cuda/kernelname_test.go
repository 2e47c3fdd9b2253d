// SPDX-License-Identifier: Apache-2.0

package cuda

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Names of kernels as CUPTI, Nsight Systems and rocprofv3 give them, mangled or not.
func TestNamesOfKernels(t *testing.T) {
	for _, c := range []struct {
		name, function string
		isNCCL         bool
	}{
		{"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "AllReduce", true},
		{"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", "AllReduce", true},
		{"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "SendRecv", true},
		{"_Z22ncclDevKernel_SendRecv24ncclDevKernelArgsStorageILm4096EE", "SendRecv", true},
		{"ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs const*)", "AllGather", true},
		{"ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "Broadcast", true},
		{"ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "Generic", true},
		{"ncclDevKernelDebug_Generic", "", true},
		{"mscclKernel_Sum_half_LL_false", "Sum", true},
		{"void gemm<float>(float*)", "", false},
		{"ncclWaiter(int)", "", false},
		{"", "", false},
	} {
		testkit.Equal(t, IsNCCLKernel(c.name), c.isNCCL, "%q is NCCL's", c.name)
		testkit.Equal(t, KernelFunction(c.name), c.function, "function of %q", c.name)
	}
}
