// SPDX-License-Identifier: Apache-2.0

package cupti

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestFunctionName(t *testing.T) {
	for mangled, want := range map[string]string{
		"": "",
		"_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE": "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
		"_Z4axpyPfS_fi": "axpy",
		"extern_c_name": "extern_c_name",
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5ArrayIPcLi1EEEEEviT0_T1_": "at::native::vectorized_elementwise_kernel",
		// The plugin keeps 127 bytes of a name.
		"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5Arra":            "at::native::vectorized_elementwise_kernel",
		"_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS1_11threadblock13MmaMultistageINS1_9GemmShapeILi64ELi6": "cutlass::Kernel",
		"_ZN12_GLOBAL__N_16kernelILi3":       "(anonymous namespace)::kernel",
		"_ZN3abc120cut_off_in_the_middle_of": "abc",
		"_ZSt9":                              "std",
		"_Z":                                 "_Z",
		"_Zxx":                               "_Zxx",
		"_Z99999999999999999999a":            "_Z99999999999999999999a",
	} {
		testkit.Equal(t, FunctionName(mangled), want, "%s", mangled)
	}
}

func FuzzFunctionName(f *testing.F) {
	f.Add("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEENS_6detail5Arra")
	f.Fuzz(func(t *testing.T, s string) { testkit.Require(t, FunctionName(s) != "" || s == "", "a name was lost") })
}
