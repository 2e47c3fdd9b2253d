// SPDX-License-Identifier: Apache-2.0

package selfreport

import (
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// If operations have no GPU times, the reason is given as far as the archive shows it: a user whose NCCL was not asked
// for them has recorded with the default.
func TestWhyOperationsHaveNoTimes(t *testing.T) {
	const unsafe = "GPU times (KernelCh): NCCL 2.29 and newer can hang or crash with them; NCCL_ALLGATHERV_ENABLE=0 " +
		"in all processes makes them safe"
	for _, c := range []struct {
		properties []otf2.Property
		want       string
	}{
		{nil, "record with NCCL_OTF2_EVENTS=gpu, the default"},
		{[]otf2.Property{{Name: "NCCL_OTF2::RECORD_MASK", Value: "0xf03"}},
			"record with NCCL_OTF2_EVENTS=gpu, the default"},
		{[]otf2.Property{{Name: "NCCL_OTF2::RECORD_MASK", Value: "0xf43"}},
			"no GPU times were recorded: NCCL was asked for them and reported none"},
		{
			[]otf2.Property{{Name: "NCCL_OTF2::RECORD_MASK", Value: "0xf43"},
				{Name: "NCCL_OTF2::API_VERSION", Value: "3"}, {Name: "NCCL_OTF2::STARTS::KERNEL_CH", Value: "12"}},
			"no GPU times were recorded: version 3 of NCCL's profiler API has none; NCCL 2.27 and newer report them",
		},
		{
			[]otf2.Property{{Name: "NCCL_OTF2::RECORD_MASK", Value: "0xf43"},
				{Name: "NCCL_OTF2::IMPORTED_FROM", Value: "Inspector"}},
			"the imported files have no times of GPUs",
		},
		{[]otf2.Property{{Name: "NCCL_OTF2::RECORD_MASK", Value: "0xf43"},
			{Name: "NCCL_OTF2::STARTS::KERNEL_CH", Value: "12"}},
			"the recorded GPU times cannot be used (nccl-otf2 print --show-markers says why); CUPTI has others, with " +
				"NCCL_OTF2_CUPTI=on"},
		{
			[]otf2.Property{{Name: "NCCL_OTF2::RECORD_MASK", Value: "0xf03"},
				{Name: "NCCL_OTF2::WITHHELD", Value: unsafe}},
			"NCCL was not asked for GPU times (NCCL 2.29 and newer can hang or crash with them; " +
				"NCCL_ALLGATHERV_ENABLE=0 in all processes makes them safe)",
		},
		{
			[]otf2.Property{{Name: "NCCL_OTF2::WITHHELD::0", Value: "nothing: process 0"},
				{Name: "NCCL_OTF2::WITHHELD::1", Value: unsafe + ": process 1"}},
			"NCCL was not asked for GPU times (NCCL 2.29 and newer can hang or crash with them; " +
				"NCCL_ALLGATHERV_ENABLE=0 in all processes makes them safe)",
		},
	} {
		testkit.Equal(t, PropertiesOf(&otf2.Anchor{Properties: c.properties}).Untimed(), c.want, "%v", c.properties)
	}
}
