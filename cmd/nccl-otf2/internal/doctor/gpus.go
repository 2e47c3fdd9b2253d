// SPDX-License-Identifier: Apache-2.0

package doctor

// nvmlName is the driver's management library, by the name under which the collector opens it.
const nvmlName = "libnvidia-ml.so.1"

// checkGPUs checks what the collector needs to learn what the job's GPUs are and to read their sensors. Where that was
// asked for, its lack is a warning.
func (e *examiner) checkGPUs() {
	const group, name = "GPUs", "NVML"
	status := func(advice string) (Status, string) {
		if e.settings.NVML {
			return Warn, advice
		}
		return Info, ""
	}
	if c := e.settings.Collector; c != "" && c != "nccl-otf2" {
		if c == "spool" {
			s, advice := status("use a collector: NCCL_OTF2_NVML has no effect without one")
			e.add(group, name, s, "not used without a collector (NCCL_OTF2_COLLECTOR=spool)", advice)
		}
		return // another collector's business
	}
	if !e.NVML {
		s, advice := status(
			"build nccl-otf2 where there is a C compiler: `make build`; until then NCCL_OTF2_NVML has no effect")
		e.add(group, name, s,
			"this nccl-otf2 was built without it (CGO_ENABLED=0): GPUs are not identified and not measured", advice)
		return
	}
	where, ok := e.resolveLibrary(nvmlName)
	if !ok {
		s, advice := status(
			"where the job runs, the driver must be installed; in a container, NVIDIA_DRIVER_CAPABILITIES must have " +
				"utility")
		e.add(group, name, s, nvmlName+" is not on this machine: GPUs are not identified and not measured here", advice)
		return
	}
	e.add(group, name, OK, where.path+" ("+where.how+")", "")
}
