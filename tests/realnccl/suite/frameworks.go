// SPDX-License-Identifier: Apache-2.0

package suite

// Where the calls of frameworks' programs were read: repository, commit and file.
const (
	processGroup = "pytorch/pytorch cf1380dfb6c8 torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
	megatron     = "NVIDIA/Megatron-LM d98e8a64ddf3 megatron/core/"
	deepSpeed    = "deepspeedai/DeepSpeed edaa7221267 deepspeed/"
	vllm         = "vllm-project/vllm 089eca13b071 vllm/distributed/device_communicators/cuda_communicator.py"
	pynccl       = "vllm-project/vllm 9a4b60a4c91d vllm/distributed/device_communicators/pynccl.py"
)

// What frameworks call, in the order in which they call it.
var frameworks = []Program{
	{Group: "PyTorch", Name: "uneven-all-gather", Args: on(3),
		Text: "( !bc:100:0 !bc:200:1 !bc:50:2 ) sync ag:100 3*[ ( bc:70:0 bc:30:1 bc:10:2 ) ar:500 ] sync ar:1:u8 " +
			"sync",
		Source: processGroup + ": allgather, _broadcast_oop, startCoalescing", Short: true},
	{Group: "PyTorch", Name: "uneven-reduce-scatter", Args: on(3),
		Text:   "( rd:100:0 rd:200:1 rd:50:2 ) sync 3*[ ( rd:70:0 rd:30:1 rd:10:2 ) ar:500 ] sync",
		Source: processGroup + ": reduce_scatter, _reduce_oop"},
	{Group: "PyTorch", Name: "coalesced", Args: on(2),
		Text: "( ag:100 ag:200 ag:300 ) ( rs:100 rs:200 rs:50 ) ( ar:10 ar:2000 ar:30 ) sync 4*[ ( ag:100 ag:200 ) ( " +
			"rs:100 rs:200 ) ] sync",
		Source: processGroup +
			": allgather_into_tensor_coalesced, reduce_scatter_tensor_coalesced, allreduce_coalesced"},
	{Group: "PyTorch", Name: "broadcast-coalesced", Args: on(2),
		Text: "( bc:100:0 bc:200:0 bc:300:0 ) sync 3*[ ar:500 ] sync",
		Source: "pytorch/pytorch cf1380dfb6c8 torch/csrc/distributed/c10d/reducer.cpp: parameters and buffers of " +
			"rank 0"},
	{Group: "PyTorch", Name: "batch-isend-irecv", Args: on(3),
		Text:   "3*[ ( send:100:+1 recv:100:-1 send:200:-1 recv:200:+1 ) ] sync ( send:50:+1 recv:50:-1 ) ar:500 sync",
		Source: processGroup + ": startCoalescing, pointToPoint, endCoalescing"},
	{Group: "PyTorch", Name: "send-recv-pairs", Args: on(4),
		Text:   "ar:100 sync csplit:0:d2:pair comm:1 3*[ pair:100:0:1 pair:100:1:0 ] sync comm:0 ar:100 sync",
		Source: processGroup + ": pointToPoint, getKeySendRecv (a communicator of its own for each pair)"},
	{Group: "PyTorch", Name: "all-to-all", Args: on(3),
		Text:   "3*[ a2a:100 ( send:10:0 recv:10:0 send:10:1 recv:10:1 send:10:2 recv:10:2 ) ] sync ar:100 sync",
		Source: processGroup + ": alltoall_base, alltoall"},
	{Group: "PyTorch", Name: "lazy-initialization", Args: on(2),
		Text:   "ar:1:u8 sync init:1 comm:1 ar:500 sync init:2 comm:2 ag:100 sync comm:0 ar:500 sync",
		Source: processGroup + ": getNCCLComm (made at the first collective of a process group)"},
	{Group: "PyTorch", Name: "split", Args: on(4),
		Text: "ar:100 sync csplit:0:m2:dp csplit:0:d2:tp csplit:0:x3:some comm:1 3*[ ar:500 ] comm:2 3*[ ag:100 ] " +
			"sync !3?[ comm:3 ar:100 sync ] comm:0 ar:100 sync",
		Source: "pytorch/pytorch cf1380dfb6c8 torch/distributed/distributed_c10d.py: new_group with a bound device " +
			"(ncclCommSplit, NCCL_SPLIT_NOCOLOR for the others)"},
	{Group: "PyTorch", Name: "non-blocking", Args: options(2, "-B"),
		Text:   "ar:1:u8 sync 3*[ ar:500 ag:100 ( rs:100 rs:200 ) ] sync",
		Source: processGroup + ": TORCH_NCCL_USE_COMM_NONBLOCKING"},
	{Group: "PyTorch", Name: "watchdog-abort", Args: on(2),
		Text:   "3*[ ar:500 ] sync 0?[ watchdog:400:0 ar:500 sync ] 1?[ work:800 abort:0 ]",
		Source: processGroup + ": abort of communicators by the watchdog", Unfinished: true},
	{Group: "PyTorch", Name: "buckets", Args: on(2),
		Text: "5*[ stream:0 event:0 stream:1 wait:0 ar:20k ar:20k ar:5k event:1 stream:0 wait:1 work:5 ] sync " +
			"ar:1:u8 sync",
		Source: "pytorch/pytorch cf1380dfb6c8 torch/csrc/distributed/c10d/reducer.cpp: all-reduces of buckets on " +
			"NCCL's stream"},

	{Group: "DeepSpeed", Name: "zero3", Args: options(2, "-b", "2m"),
		Text: "2*[ stream:1 4*[ ag:1000:bf16 ] sync 4*[ ag:1000:bf16 rs:1000:bf16 ] sync ] ar:1 sync",
		Source: deepSpeed +
			"runtime/zero/partition_parameters.py: _all_gather_dtype; runtime/comm/coalesced_collectives.py: " +
			"reduce_scatter_coalesced; runtime/zero/partitioned_param_coordinator.py"},
	{Group: "DeepSpeed", Name: "pipeline-by-broadcast", Args: on(4),
		Text:   "csplit:0:d2:stage comm:1 4*[ bc:100:0 bc:100:1 ] sync comm:0 ar:500 sync",
		Source: deepSpeed + "runtime/pipe/p2p.py: send, recv (a broadcast between two stages)"},

	{Group: "Megatron-LM", Name: "gradient-sync", Args: on(2),
		Text: "3*[ ( rs:1000 rs:500 rs:200 ) ( ag:1000 ag:500 ag:200 ) ] sync ar:1 sync",
		Source: megatron +
			"distributed/param_and_grad_buffer.py: start_grad_sync, start_param_sync with _coalescing_manager"},
	{Group: "Megatron-LM", Name: "layer-wise-param-sync", Args: on(3),
		Text:   "3*[ rs:300 ( bc:300:0 bc:250:1 bc:350:2 ) ] sync ar:1 sync",
		Source: megatron + "distributed/param_and_grad_buffer.py: start_param_sync (all_gather of uneven tensors)"},
	{Group: "Megatron-LM", Name: "pipeline-batched", Args: on(4),
		Text: "csplit:0:m1:pp comm:1 4*[ ( send:500:+1 recv:500:-1 ) ( send:500:-1 recv:500:-1 send:500:+1 " +
			"recv:500:+1 ) ] sync comm:0 ar:1 sync",
		Source: megatron + "pipeline_parallel/p2p_communication.py: _batched_p2p_ops"},
	{Group: "Megatron-LM", Name: "pipeline-even-odd", Args: options(2, "-c", "2"),
		Text:   "4*[ comm:0 stream:0 pair:500:0:1 comm:1 stream:1 pair:500:1:0 ] sync",
		Source: megatron + "pipeline_parallel/p2p_communication.py: _p2p_ops (two communicators between two stages)"},
	{Group: "Megatron-LM", Name: "tensor-parallel", Args: on(4),
		Text:   "csplit:0:d2:tp csplit:0:m2:dp 3*[ comm:1 ag:500:bf16 rs:500:bf16 ar:500:bf16 ] comm:2 ar:1000 sync",
		Source: megatron + "tensor_parallel/mappings.py, parallel_state.py"},
	{Group: "Megatron-LM", Name: "experts", Args: on(3),
		Text: "3*[ ag:8:i32 a2a:300:bf16 a2a:30 a2a:300:bf16 ] sync ar:1 sync",
		Source: megatron +
			"transformer/moe/token_dispatcher.py: MoEAlltoAllTokenDispatcher.preprocess, token_dispatch, " +
			"token_combine"},

	{Group: "vLLM", Name: "all-gatherv", Args: on(2), Text: "ar:1 sync ( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync",
		Source: vllm + ": all_gatherv"},
	{Group: "vLLM", Name: "all-gatherv-of-several", Args: on(2),
		Text: "ar:1 sync 3*[ ( ( bc:100:0 bc:200:1 ) ( bc:10:0 bc:20:1 ) ) ( rd:100:0 rd:200:1 ) ] sync 3*[ ar:500 " +
			"] sync",
		Source: vllm + ": all_gatherv of a list, reduce_scatterv (dispatch and combine of experts)"},
	{Group: "vLLM", Name: "naive-multicast", Args: on(2), Text: "ar:1 sync 3*[ bc:100:0 bc:200:1 ar:300 ] sync",
		Source: "vllm-project/vllm e04bcc7fa012 vllm/distributed/device_communicators/all2all.py: NaiveAll2AllManager"},
	{Group: "vLLM", Name: "captured-decode", Args: on(2),
		Text: "ar:1 sync stream:1 begincap ar:500:bf16 event:0 stream:2 wait:0 ar:500:bf16 event:1 stream:1 wait:1 " +
			"2*[ ar:500:bf16 ] ag:100:bf16 endcap:0 begincap 4*[ ar:250:bf16 ] ag:50:bf16 endcap:1 5*[ replay:0 " +
			"replay:1 ] sync freegraph:0 freegraph:1",
		Source: pynccl +
			": all_reduce; vllm/distributed/parallel_state.py: graph_capture (a stream of its own, a graph for each " +
			"batch size)", Short: true},
	{Group: "vLLM", Name: "captured-and-eager", Args: on(2),
		Text: "ar:1 sync stream:1 begincap 4*[ ar:500:bf16 ] endcap:0 3*[ replay:0 stream:0 ar:700:bf16 stream:1 " +
			"sync ] sync freegraph:0",
		Source: pynccl + ": all_reduce; a prefill without a graph between decodes with one"},
	{Group: "vLLM", Name: "captured-experts", Args: on(2),
		Text: "ar:1 sync stream:1 begincap ar:500 bc:100:0 bc:200:1 ar:300 endcap:0 5*[ replay:0 ] sync ar:500 " +
			"sync freegraph:0",
		Source: "vllm-project/vllm e04bcc7fa012 vllm/distributed/device_communicators/all2all.py: " +
			"NaiveAll2AllManager.naive_multicast in a captured step"},
	{Group: "vLLM", Name: "captured-all-gatherv", Args: on(2),
		Text: "ar:1 sync stream:1 begincap ar:500 ( ( bc:100:0 bc:200:1 ) ( bc:10:0 bc:20:1 ) ) ( rd:100:0 " +
			"rd:200:1 ) endcap:0 5*[ replay:0 ] sync ar:500 sync freegraph:0",
		Source: vllm + ": all_gatherv of a list in a captured step"},
	{Group: "vLLM", Name: "pipeline", Args: on(2), Text: "ar:1 sync 3*[ pair:500:0:1 ar:100 ] sync",
		Source: pynccl + ": send, recv"},
}
