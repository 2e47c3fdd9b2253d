// SPDX-License-Identifier: Apache-2.0

package main

// counter is a row of a table of counters.
type counter struct {
	constant string
	key      string // in descriptions of processes
	exported string // the constant of the key, if others name it
	comment  string
}

// oddities are the kinds of events and conditions that should not occur. Their keys are those of
// description.Counts.Oddities and the last parts of the archive's properties.
var oddities = []counter{
	{"oddStrayStop", "STRAY_STOPS", "", "stop of an event that is not open"},
	{"oddStrayState", "STRAY_STATES", "", "state of an event that is not open"},
	{"oddLateChild", "LATE_CHILDREN", "", "KernelCh whose operation was written already or is not known"},
	{"oddForeign", "FOREIGN_CONTEXTS", "", "event whose context is not a communicator's"},
	{"oddUnfinishedCall", "UNFINISHED_CALLS", "", "GroupApi or CeColl without stop"},
	{"oddIncompleteOperation", "INCOMPLETE_OPERATIONS", "", "operation written before all its children had ended"},
	{"oddImplausible", "IMPLAUSIBLE_GPU_TIMES", "", "plan with impossible GPU times"},
	{"oddDroppedMessage", "DROPPED_MESSAGES", "", "P2pApi without P2p: NCCL dropped a message to oneself"},
	{"oddUnknownFunction", "UNKNOWN_FUNCTIONS", "", "operation of a function not known here"},
	{"oddLateRecord", "LATE_RECORDS", "", "record that came after later ones had been taken"},
	{"oddAfterFinalize", "AFTER_FINALIZE", "", "event of a communicator rank that was finalized: not drawn"},
	{"oddUnknownCommSize", "UNKNOWN_COMM_SIZE", "",
		"operation drawn without its communicator: its size was never reported (API v1 … v3)"},
	{"oddCaptureOnly", "CAPTURE_ONLY_PLANS", "OddityCaptureOnly",
		"plan that NCCL reported at its capture and will not report at its replays: not drawn"},
	{"oddForgottenCall", "FORGOTTEN_CALLS", "", "captured call dropped: too many were kept for replays"},
	{"oddRepeatedStep", "REPEATED_STEPS", "",
		"ProxyStep started again before it was posted; the earlier start does not count"},
	{"oddUnstoppedStep", "UNSTOPPED_STEPS", "", "ProxyStep that NCCL went past without stopping it"},
	{"oddForgottenEvent", "FORGOTTEN_EVENTS", "",
		"ProxyOp, ProxyStep, KernelCh or NetPlugin dropped: too many were open"},
	{"oddUnplacedTransfer", "UNPLACED_TRANSFERS", "",
		"transfer, message or collective whose peer or root is not a known rank of the communicator: no record of it"},
	{"oddUnsizedTransfer", "UNSIZED_TRANSFERS", "", "transfer whose size NCCL did not report: no RmaPut"},
	{"oddNetStop", "REPEATED_NET_STOPS", "",
		"NetPlugin stopped that is not open: InfiniBand requests are stopped twice"},
	{"oddUnknownNet", "UNKNOWN_NET_EVENTS", "", "NetPlugin with a descriptor of a kind not known"},
	{"oddImplausibleChannel", "IMPLAUSIBLE_CHANNEL_TIMES", "",
		"KernelCh interval left out of its channel's row, with its plan's"},
	{"oddStrayPhaseEnd", "STRAY_PHASE_ENDS", "", "end of an application phase where none is open"},
	{"oddUnfinishedPhase", "UNFINISHED_PHASES", "", "application phase that was not ended"},
	{"oddCrossingPhase", "CROSSING_PHASES", "",
		"application phase that began or ended inside an NCCL group only: moved to the group's end"},
	{"oddDeepPhase", "DEEP_PHASES", "", "application phase inside too many others: not drawn"},
	{"oddTimesDiffer", "GPU_TIMES_DIFFER", "", "plan whose kernel ran at other times by NCCL's stamps than by CUPTI"},
	{"oddMaskChanged", "MASK_CHANGED_BY_RAS", "", "change of NCCL's activation mask by RAS, not by the plugin"},
	{"oddShortHold", "SHORT_HOLDS", "", "operation written before its GPU's clock was known well: too many waited"},
	{"oddNoRow", "NO_ROW", "", "event that needed one row more than maxRows"},
}

// counts are the counters of CUPTI's records; docs/gpu.md explains them.
var counts = []counter{
	{"countRecords", "RECORDS", "CountRecords", "activity records"},
	{"countUnknown", "UNKNOWN_RECORDS", "", "of kinds that are not used"},
	{"countBroken", "BROKEN_RECORDS", "", "cut off"},
	{"countKernels", "KERNELS", "CountKernels", "kernels; the following counts add up to this"},
	{"countLinked", "KERNELS_LINKED", "CountLinked", "linked to their ncclKernelLaunch"},
	{"countOther", "KERNELS_OTHER", "CountOther", "not NCCL's, launched under no external id: the application's own"},
	{"countNoExternal", "KERNELS_NO_EXTERNAL_ID", "", "NCCL's, launched by a call without an external id"},
	{"countNoCall", "KERNELS_NO_API_CALL", "", "their API calls are not known"},
	{"countAged", "KERNELS_AGED_OUT", "", "NCCL's, and neither API call nor external id came in time"},
	{"countImplausible", "KERNELS_IMPLAUSIBLE", "", "the external id cannot be that of their call"},
	{"countAmbiguous", "KERNELS_AMBIGUOUS", "", "their correlation id was used twice"},
	{"countGraphLinked", "KERNELS_GRAPH_LINKED", "CountGraphLinked", "of a graph, linked to the replayed plan"},
	{"countGraphUnlinked", "KERNELS_GRAPH_UNLINKED", "", "NCCL's, of a graph, and not certain which plan's"},
	{"countGraphOther", "KERNELS_GRAPH_OTHER", "", "other ones of graphs"},
	{"countUnlinked", "NCCL_KERNELS_UNLINKED", "CountUnlinked", "NCCL's that are not linked, for any reason"},
	{"countReplays", "REPLAYS_UNLINKED", "", "replayed plans whose kernel is not certain"},
	{"countNoPlan", "LINKED_WITHOUT_PLAN", "",
		"linked to a launch without a plan that was waiting: no second source of times"},
	{"countIdle", "LAUNCHES_WITHOUT_KERNEL", "", "launches without a kernel: captured, or never run"},
	{"countCopies", "COPIES", "", ""},
	{"countSets", "MEMSETS", "", ""},
	{"countWaits", "SYNCHRONIZATIONS", "", "synchronization"},
	{"countGraphs", "GRAPHS", "", ""},
	{"countNoTimes", "WITHOUT_TIMES", "CountNoTimes", "activities that CUPTI could not time, not drawn"},
	{"countNoClock", "WITHOUT_CLOCK", "CountNoClock",
		"activities whose times could not be brought to the process's clock, not drawn"},
	{"countNoDevice", "WITHOUT_DEVICE", "CountNoDevice", "waits in contexts of unknown devices, not drawn"},
	{"countNoRow", "WITHOUT_ROW", "CountNoRow", "activities of streams beyond those that are drawn"},
	{"countBeforeLaunch", "KERNELS_BEFORE_LAUNCH", "",
		"kernels that began before their launch: their times are not taken for their plan's"},
	{"countEarly", "WRITTEN_EARLY", "", "activities written before their time because there were too many"},
	{"countLate", "WRITTEN_LATE", "", "activities that came when later ones had been written: raised"},
	{"countOverlaps", "OVERLAPS", "", "activities beside others of their stream, drawn on rows of their own"},
	{"countMoved", "OVERLAPS_MOVED", "", "of them, raised to the end of others because too many ran at one time"},
	{"countClockJumps", "CLOCK_JUMPS", "", "of CUPTI's clock"},
	{"countForeignClock", "FOREIGN_CLOCK_READINGS", "",
		"readings that are not CLOCK_REALTIME: another client of CUPTI's has its own clock"},
	{"countMemory", "MEMORY_OPERATIONS", "", "allocations and releases of memory"},
	{"countForgotten", "MEMORY_FORGOTTEN", "", "of them, dropped because there were too many"},
	{"countUndecided", "KERNELS_UNDECIDED", "CountUndecided", "kernels not classified yet; none at the end"},
	{"countUndrawn", "UNDRAWN", "CountUndrawn", "records not drawn or decoded yet; none at the end"},
}
