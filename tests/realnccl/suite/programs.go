// SPDX-License-Identifier: Apache-2.0

package suite

const (
	everyCollective = "!ar:1 !ar:1000 !ar:60k !ari:500 !ag:1000 !rs:1000 !bc:1000:1 !rd:1000:1 4*[ ar:500 ] sync"
	someReductions  = "!ar:1 !ar:1000 !ar:60k 4*[ ar:500 ] sync"
)

var (
	ringLL     = []string{"NCCL_ALGO=Ring", "NCCL_PROTO=LL"}
	ringSimple = []string{"NCCL_ALGO=Ring", "NCCL_PROTO=Simple"}
	ringLL128  = []string{"NCCL_ALGO=Ring", "NCCL_PROTO=LL128"}
	treeLL128  = []string{"NCCL_ALGO=Tree", "NCCL_PROTO=LL128"}
	treeLL     = []string{"NCCL_ALGO=Tree", "NCCL_PROTO=LL"}
	treeSimple = []string{"NCCL_ALGO=Tree", "NCCL_PROTO=Simple"}
	sockets    = []string{"NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"}
)

var collectives = []Program{
	{Group: "collectives", Name: "ring-ll", Args: on(3), Env: ringLL, Text: everyCollective},
	{Group: "collectives", Name: "ring-ll128", Args: on(3), Env: ringLL128, Text: everyCollective},
	{Group: "collectives", Name: "tree-ll128", Args: on(3), Env: treeLL128, Text: someReductions},
	{Group: "collectives", Name: "ring-simple", Args: on(3), Env: ringSimple, Text: everyCollective},
	{Group: "collectives", Name: "tree-ll", Args: on(3), Env: treeLL, Text: someReductions},
	{Group: "collectives", Name: "tree-simple", Args: on(4), Env: treeSimple, Text: someReductions},
	{Group: "collectives", Name: "tree-late-root", Args: on(4), Env: treeLL, Text: "!ar:1000 sync 4*[ 0?[ sleep:40 ] ar:1000 sync ]", Short: true, EndsLater: true},
	{Group: "collectives", Name: "tree-late-roots", Args: options(4, "-H"), Env: append(treeLL, "NCCL_MIN_NCHANNELS=2"), Text: "!ar:4k sync 4*[ 0?[ sleep:40 ] ar:4k sync ]", Seconds: 40, EndsLater: true},
	{Group: "collectives", Name: "chosen", Args: on(2), Text: everyCollective, Short: true},
	{Group: "collectives", Name: "types", Args: on(2), Text: "!ar:100:f16 !ar:100:bf16 !ar:100:i8 !ar:100:u8 !ar:100:i32 !ar:100:u32 !ar:100:i64 !ar:100:u64 !ar:100:f64 !ag:100:f16 !rs:100:i32 !bc:100:0:u8 !rd:100:1:f64"},
	{Group: "collectives", Name: "reductions", Args: on(2), Text: "!ar:100:f32:prod !ar:100:f32:max !ar:100:f32:min !ar:100:f32:avg !rs:100:f32:max !rs:100:f32:avg"},
	{Group: "collectives", Name: "many", Args: on(2), Text: "100*[ ar:100 ] sync 50*[ ag:10 rs:10 ] sync !ar:100"},
	{Group: "collectives", Name: "large", Args: options(2, "-b", "8m"), Text: "!ar:2m !ag:500k !rs:500k sync"},
	{Group: "collectives", Name: "sockets", Args: on(3), Env: sockets, Text: everyCollective, Short: true},
	{Group: "collectives", Name: "sockets-large", Args: options(2, "-b", "8m"), Env: sockets, Text: "!ar:2m !ag:500k sync"},
	{Group: "collectives", Name: "one-channel", Args: on(2), Env: []string{"NCCL_MAX_NCHANNELS=1"}, Text: everyCollective},
	{Group: "collectives", Name: "many-channels", Args: on(2), Env: []string{"NCCL_MIN_NCHANNELS=16"}, Text: everyCollective},
	{Group: "collectives", Name: "two-streams", Args: options(2, "-c", "2"), Text: "5*[ stream:0 comm:0 ar:1000 stream:1 comm:1 ag:1000 ] sync"},
	{Group: "collectives", Name: "none", Args: on(2), Text: "sync"},
}

var messages = []Program{
	{Group: "messages", Name: "ring-shift", Args: on(3), Text: "!sr:100 !sr:50k 4*[ sr:500 ] sync"},
	{Group: "messages", Name: "late-shift", Args: on(3), Text: "!sr:1000 sync 4*[ 1?[ sleep:40 ] sr:1000 sync ]", Short: true, EndsLater: true},
	{Group: "messages", Name: "pairs", Args: on(3), Text: "pair:500:0:1 pair:700:1:2 pair:300:2:0 sync 3*[ pair:100:0:2 ] sync"},
	{Group: "messages", Name: "all-to-all", Args: on(3), Text: "!a2a:500 3*[ a2a:1000 ] sync", Short: true},
	{Group: "messages", Name: "all-to-all-call", Args: on(3), Text: "3*[ !alltoall:500 ] sync", Since: "2.28"},
	{Group: "messages", Name: "gather-scatter", Args: on(3), Text: "!gather:500:1 !scatter:500:2 !gather:100:0 !scatter:100:0 sync", Since: "2.28"},
	{Group: "messages", Name: "sockets", Args: on(3), Env: sockets, Text: "!sr:50k !a2a:500 pair:500:0:1 sync"},
	{Group: "messages", Name: "with-collectives", Args: on(2), Text: "3*[ ar:500 sr:500 ag:100 a2a:100 ] sync !ar:500"},
	{Group: "messages", Name: "simple", Args: on(2), Env: ringSimple, Text: "!sr:100 !a2a:5000 sync"},
}

var groups = []Program{
	{Group: "groups", Name: "collectives", Args: on(2), Text: "( !ar:500 !ag:100 !rs:100 ) sync 3*[ ( ar:100 ar:200 ar:300 ) ] sync !ar:500", Short: true},
	{Group: "groups", Name: "nested", Args: on(2), Text: "( ( !ar:100 !ar:200 ) ( !ag:100 ) !rs:100 ) sync ( ( ( ar:10 ) ) ) sync !ar:500"},
	{Group: "groups", Name: "empty", Args: on(2), Text: "( ) ( ( ) ) ( ar:100 ) ( ) sync"},
	{Group: "groups", Name: "many-calls", Args: on(2), Text: "( 60*[ ar:64 ] ) sync ( 30*[ ag:16 rs:16 ] ) sync"},
	{Group: "groups", Name: "messages-and-collectives", Args: on(2), Text: "( ar:500 sr:500 ag:100 a2a:100 ) sync !ar:500"},
	{Group: "groups", Name: "several-communicators", Args: options(2, "-c", "3"), Text: "( comm:0 ar:100 comm:1 ar:200 comm:2 ag:100 ) sync comm:0 !ar:500"},
	{Group: "groups", Name: "reductions-and-roots", Args: on(3), Text: "( !rd:100:0 !rd:200:1 !rd:300:2 ) sync 3*[ ar:500 ] sync"},
}

// A group of Broadcasts with several roots is what frameworks make of an uneven all-gather. From 2.29 on NCCL turns it into
// one AllGatherV.
var broadcasts = []Program{
	{Group: "broadcasts", Name: "single", Args: on(2), Text: "!bc:1000:0 !bc:1000:1 5*[ bc:500:0 ] sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "one-before", Args: on(2), Text: "bc:100:0 sync ar:100 sync", Short: true},
	{Group: "broadcasts", Name: "one-root", Args: on(2), Text: "( bc:100:0 bc:200:0 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots", Args: on(2), Text: "( !bc:100:0 !bc:200:1 ) sync 3*[ !ar:500 ] sync", Short: true},
	{Group: "broadcasts", Name: "two-roots-only", Args: on(2), Text: "( bc:100:0 bc:200:1 ) sync"},
	{Group: "broadcasts", Name: "two-roots-again", Args: on(2), Text: "5*[ ( bc:100:0 bc:200:1 ) ] sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-late", Args: on(2), Text: "5*[ ar:500 ] sync ( bc:100:0 bc:200:1 ) 5*[ ar:500 ] sync ( bc:100:1 bc:200:0 ) ag:100 sync"},
	{Group: "broadcasts", Name: "two-roots-then-broadcast", Args: on(2), Text: "( bc:100:0 bc:200:1 ) sync 3*[ bc:500:0 ] sync"},
	{Group: "broadcasts", Name: "two-roots-then-messages", Args: on(2), Text: "( bc:100:0 bc:200:1 ) sync 3*[ sr:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-twice-each", Args: on(2), Text: "( bc:100:0 bc:200:1 bc:50:0 bc:60:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-and-reductions", Args: on(2), Text: "( bc:100:0 ar:100 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-and-messages", Args: on(2), Text: "( bc:100:0 sr:100 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-nested", Args: on(2), Text: "( ( bc:100:0 ) ( bc:200:1 ) ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-large", Args: options(2, "-b", "8m"), Text: "( !bc:1m:0 !bc:2m:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-simple", Args: on(2), Env: ringSimple, Text: "( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-sockets", Args: on(2), Env: sockets, Text: "( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "two-roots-ll128", Args: on(2), Env: ringLL128, Text: "( !bc:100:0 !bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "one-root-per-stream", Args: on(2), Text: "( stream:0 bc:100:0 stream:1 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "three-roots", Args: on(3), Text: "( !bc:100:0 !bc:200:1 !bc:300:2 ) sync 3*[ ar:500 ] sync ( bc:100:2 bc:200:1 ) sync 3*[ ag:100 ] sync"},
	{Group: "broadcasts", Name: "two-communicators", Args: options(2, "-c", "2"), Text: "( comm:0 bc:100:0 comm:1 bc:200:1 ) sync ( comm:0 bc:100:0 bc:200:1 comm:1 bc:100:0 bc:200:1 ) sync comm:0 3*[ ar:500 ] comm:1 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "other-communicator-after", Args: options(2, "-c", "2"), Text: "( bc:100:0 bc:200:1 ) sync comm:1 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "on-a-split", Args: on(4), Text: "split:2:x:part comm:1 ( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync comm:0 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "captured", Args: on(2), Text: "begincap ( bc:100:0 bc:200:1 ) endcap:0 3*[ replay:0 ] sync 3*[ ar:500 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "captured-with-others", Args: on(2), Text: "begincap ar:100 ( bc:100:0 bc:200:1 ) ar:200 endcap:0 replay:0 sync ar:500 replay:0 sync 3*[ ar:500 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "captured-one", Args: on(2), Text: "begincap bc:500:0 endcap:0 3*[ replay:0 ] sync 3*[ ar:100 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "captured-one-with-others", Args: on(2), Text: "begincap bc:500:0 ar:100 endcap:0 3*[ replay:0 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "captured-one-late", Args: on(2), Text: "ar:100 sync begincap bc:500:0 endcap:0 3*[ replay:0 ] sync ar:100 sync freegraph:0"},
	{Group: "broadcasts", Name: "captured-in-a-group", Args: on(2), Text: "begincap ( bc:500:0 ar:100 ) endcap:0 3*[ replay:0 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "before-a-capture", Args: on(2), Text: "( bc:100:0 bc:200:1 ) sync begincap ar:100 ag:100 endcap:0 3*[ replay:0 ] sync 3*[ ar:500 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "between-replays", Args: on(2), Text: "begincap ar:100 ag:100 endcap:0 replay:0 sync ( bc:100:0 bc:200:1 ) sync replay:0 replay:0 sync 3*[ ar:500 ] sync freegraph:0"},
	{Group: "broadcasts", Name: "threads", Args: options(1, "-g", "3", "-m", "threads"), Text: "( bc:100:0 bc:200:1 bc:50:2 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "one-thread", Args: options(1, "-g", "2"), Text: "( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "hosts", Args: options(2, "-g", "2", "-m", "threads", "-H"), Text: "( bc:100:0 bc:200:1 bc:50:2 bc:10:3 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "non-blocking", Args: options(2, "-B"), Text: "( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "without-allgatherv", Args: on(2), Env: []string{"NCCL_ALLGATHERV_ENABLE=0"}, Text: "( bc:100:0 bc:200:1 ) sync 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "destroyed-after", Args: on(2), Text: "( bc:100:0 bc:200:1 ) sync destroy:0 init:1 comm:1 3*[ ar:500 ] sync"},
	{Group: "broadcasts", Name: "aborted-after", Args: on(2), Text: "( bc:100:0 bc:200:1 ) sync ar:500 sync abort:0"},
}

var communicators = []Program{
	{Group: "communicators", Name: "eight", Args: options(2, "-c", "8"), Text: "comm:0 ar:100 comm:1 ar:100 comm:2 ar:100 comm:3 ar:100 comm:4 ar:100 comm:5 ar:100 comm:6 ar:100 comm:7 ar:100 sync", Seconds: 60},
	{Group: "communicators", Name: "unused", Args: options(2, "-c", "4"), Text: "!ar:500 sync"},
	{Group: "communicators", Name: "split", Args: on(4), Text: "split:2:x:part comm:1 3*[ ar:500 ] sync !ag:100 comm:0 ar:500 sync", Short: true},
	{Group: "communicators", Name: "split-shared", Args: on(4), Text: "split:2:share:part comm:1 3*[ ar:500 ] sync comm:0 ar:500 sync"},
	{Group: "communicators", Name: "split-shared-all", Args: on(2), Text: "ar:100 sync split:1:share:same comm:1 3*[ ar:500 ] comm:0 ar:500 sync"},
	{Group: "communicators", Name: "split-twice", Args: on(4), Text: "csplit:0:m2:even comm:1 2*[ ar:500 ] csplit:0:d2:half comm:2 2*[ ag:100 ] sync comm:0 ar:100 sync"},
	{Group: "communicators", Name: "split-of-split", Args: on(4), Text: "csplit:0:m2:even csplit:1:m1:again comm:2 2*[ ar:500 ] sync comm:1 ar:200 comm:0 ar:100 sync"},
	{Group: "communicators", Name: "split-reversed", Args: on(3), Text: "csplit:0:m1r:reversed comm:1 !ar:500 2*[ ag:100 ] sync"},
	{Group: "communicators", Name: "split-without-one", Args: on(3), Text: "csplit:0:x1:without !1?[ comm:1 3*[ ar:500 ] sync ] comm:0 ar:100 sync"},
	{Group: "communicators", Name: "shrink", Args: on(3), Text: "ar:100 sync shrink:1 !1?[ comm:1 3*[ ar:500 ] sync ]", Since: "2.27"},
	{Group: "communicators", Name: "re-created", Args: on(2), Text: "ar:100 sync destroy:0 init:1 comm:1 3*[ ar:500 ] sync destroy:1 init:2 comm:2 ag:100 sync", Short: true},
	{Group: "communicators", Name: "finalized", Args: on(2), Text: "3*[ ar:500 ] sync finalize:0 destroy:0"},
	{Group: "communicators", Name: "shrunk-after-abort", Args: on(3), Text: "3*[ ar:500 ] sync cshrink:0:2:rest:abort !2?[ comm:1 3*[ !ar:500 ] sync ]", Since: "2.27"},
	{Group: "communicators", Name: "made-by-some", Args: on(3), Text: "ar:100 sync initof:1:0,2:pair !1?[ comm:1 3*[ !ar:500 ] sync ] comm:0 ar:100 sync"},
	{Group: "communicators", Name: "made-late", Args: options(2, "-c", "0"), Text: "work:50 init:0 3*[ !ar:500 ] sync"},
	{Group: "communicators", Name: "registered-buffers", Args: on(2), Text: "register:0 3*[ ar:500 ag:100 ] sync deregister:0 ar:100 sync"},
	{Group: "communicators", Name: "revoked", Args: on(2), Text: "3*[ ar:500 ] sync revoke:0 abort:0 init:1 comm:1 3*[ ar:500 ] sync", Since: "2.29"},
	{Group: "communicators", Name: "aborted", Args: on(2), Text: "3*[ ar:500 ] sync abort:0"},
	{Group: "communicators", Name: "aborted-one-of-two", Args: options(2, "-c", "2"), Text: "3*[ ar:500 ] sync abort:0 comm:1 3*[ ar:500 ] sync"},
	{Group: "communicators", Name: "aborted-idle", Args: on(2), Text: "abort:0"},
	{Group: "communicators", Name: "aborted-and-made-anew", Args: on(2), Text: "3*[ ar:500 ] sync abort:0 init:1 comm:1 3*[ ar:500 ] sync"},
	{Group: "communicators", Name: "aborted-while-waiting", Args: on(2), Text: "3*[ ar:500 ] sync 0?[ ar:500 work:300 ] 1?[ work:300 ] abort:0", Unfinished: true},
	{Group: "communicators", Name: "aborted-by-a-watchdog", Args: on(2), Text: "3*[ ar:500 ] sync 0?[ watchdog:300:0 ar:500 sync ] 1?[ work:600 abort:0 ]", Unfinished: true},
	{Group: "communicators", Name: "non-blocking", Args: options(2, "-B"), Text: "3*[ ar:500 ] sync ( ar:100 ag:100 ) sync", Short: true},
	{Group: "communicators", Name: "non-blocking-several", Args: options(2, "-B", "-c", "3"), Text: "comm:0 ar:500 comm:1 ar:500 comm:2 ar:500 sync ( comm:0 ar:100 comm:1 ag:100 ) sync", Seconds: 40},
	{Group: "communicators", Name: "one-rank", Args: on(1), Text: "ar:500 ag:100 sync"},
}

var graphs = []Program{
	{Group: "graphs", Name: "replayed", Args: on(2), Text: "begincap ar:500 ag:100 endcap:0 5*[ replay:0 ] sync freegraph:0", Short: true},
	{Group: "graphs", Name: "replayed-much", Args: on(2), Text: "begincap ar:500 endcap:0 60*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "group", Args: on(2), Text: "begincap ( ar:500 ag:100 rs:100 ) endcap:0 5*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "direct-before", Args: on(2), Text: "3*[ ar:500 ] sync begincap ar:500 endcap:0 3*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "direct-between", Args: on(2), Text: "begincap ar:500 ag:100 endcap:0 3*[ replay:0 ar:100 ] sync 3*[ ar:500 ] sync freegraph:0"},
	{Group: "graphs", Name: "two", Args: on(2), Text: "begincap ar:500 endcap:0 begincap ag:100 rs:100 endcap:1 3*[ replay:0 replay:1 ] sync freegraph:0 freegraph:1"},
	{Group: "graphs", Name: "two-communicators", Args: options(2, "-c", "2"), Text: "begincap comm:0 ar:500 comm:1 ag:100 endcap:0 3*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "messages", Args: on(2), Text: "begincap sr:500 a2a:100 endcap:0 3*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "broadcast", Args: on(2), Text: "begincap bc:500:0 bc:500:1 ar:100 endcap:0 3*[ replay:0 ] sync ar:500 sync freegraph:0"},
	{Group: "graphs", Name: "freed-and-captured-anew", Args: on(2), Text: "2*[ begincap ar:500 endcap:0 2*[ replay:0 ] sync freegraph:0 ] ar:100 sync"},
	{Group: "graphs", Name: "never-replayed", Args: on(2), Text: "begincap ar:500 endcap:0 sync freegraph:0 ar:100 sync"},
	{Group: "graphs", Name: "sockets", Args: on(2), Env: sockets, Text: "begincap ar:500 ag:100 endcap:0 5*[ replay:0 ] sync ar:100 sync freegraph:0"},
	{Group: "graphs", Name: "without-mixing", Args: on(2), Env: []string{"NCCL_GRAPH_MIXING_SUPPORT=0"}, Text: "begincap ar:500 ag:100 endcap:0 5*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "side-stream", Args: on(2), Text: "begincap ar:500 event:0 stream:1 wait:0 ag:100 event:1 stream:0 wait:1 rs:100 endcap:0 5*[ replay:0 ] sync freegraph:0"},
	{Group: "graphs", Name: "side-stream-two-communicators", Args: options(2, "-c", "2"), Text: "begincap comm:0 ar:500 event:0 stream:1 wait:0 comm:1 ag:100 event:1 stream:0 wait:1 comm:0 rs:100 endcap:0 5*[ replay:0 ] sync comm:0 ar:100 sync freegraph:0"},
	{Group: "graphs", Name: "replayed-on-another-stream", Args: on(2), Text: "begincap ar:500 endcap:0 replay:0 sync stream:1 3*[ replay:0 ] sync ar:100 sync freegraph:0"},
	{Group: "graphs", Name: "threads", Args: options(1, "-g", "2", "-m", "threads"), Text: "begincap ar:500 ag:100 endcap:0 5*[ replay:0 ] sync freegraph:0"},
}

var drivers = []Program{
	{Group: "several ranks per process", Name: "threads", Args: options(1, "-g", "4", "-m", "threads"), Text: "3*[ ar:500 ] sync !ag:100 ( ar:100 rs:100 ) sync", Short: true},
	{Group: "several ranks per process", Name: "groups", Args: options(1, "-g", "3"), Text: "3*[ ar:500 ] sync !ag:100 ( ar:100 rs:100 ) sync"},
	{Group: "several ranks per process", Name: "initall", Args: options(1, "-g", "4", "-m", "initall"), Text: "3*[ ar:500 ] sync !ag:100 sync"},
	{Group: "several ranks per process", Name: "two-by-two-threads", Args: options(2, "-g", "2", "-m", "threads"), Text: "3*[ ar:500 ] sync !ag:100 sr:100 sync"},
	{Group: "several ranks per process", Name: "two-by-two-groups", Args: options(2, "-g", "2"), Text: "3*[ ar:500 ] sync !ag:100 sr:100 sync"},
	{Group: "several ranks per process", Name: "threads-several-communicators", Args: options(1, "-g", "3", "-m", "threads", "-c", "2"), Text: "3*[ comm:0 ar:500 comm:1 ag:100 ] sync"},
	{Group: "several ranks per process", Name: "threads-non-blocking", Args: options(1, "-g", "2", "-m", "threads", "-B"), Text: "3*[ ar:500 ] sync"},
	{Group: "several ranks per process", Name: "threads-split", Args: options(1, "-g", "4", "-m", "threads"), Text: "csplit:0:m2:part comm:1 3*[ ar:500 ] sync"},
	{Group: "several hosts", Name: "two", Args: options(2, "-H"), Text: everyCollective},
	{Group: "several hosts", Name: "two-by-two", Args: options(2, "-g", "2", "-m", "threads", "-H"), Text: "3*[ ar:500 ] sync !ar:60k !ag:1000 !rs:1000 sr:500 a2a:100 sync"},
	{Group: "several hosts", Name: "four", Args: options(4, "-H"), Text: "!ar:1000 !ar:60k !ag:100 sr:500 a2a:100 sync", Seconds: 40},
	{Group: "several hosts", Name: "split", Args: options(4, "-H"), Text: "split:2:x:part comm:1 3*[ ar:500 ] sync", Seconds: 40},
}

var lives = []Program{
	{Group: "lives of processes", Name: "ras", Args: on(2), Env: []string{"NCCL_RAS_ENABLE=1"}, Text: "3*[ ar:500 ] sync destroy:0 init:1 comm:1 3*[ ar:500 ] sync"},
	{Group: "lives of processes", Name: "not-destroyed", Args: on(2), Text: "3*[ !ar:500 ] sync nodestroy"},
	{Group: "lives of processes", Name: "exit", Args: on(2), Text: "3*[ !ar:500 ] sync barrier quit:0"},
	{Group: "lives of processes", Name: "exit-with-a-code", Args: on(2), Text: "3*[ ar:500 ] sync barrier quit:7", Exit: 7, Unfinished: true},
	{Group: "lives of processes", Name: "exit-at-once", Args: on(2), Text: "3*[ ar:500 ] sync barrier leave:0"},
	{Group: "lives of processes", Name: "fork", Args: on(2), Text: "3*[ ar:500 ] sync fork 3*[ !ar:500 ] sync"},
	{Group: "lives of processes", Name: "fork-and-live-on", Args: on(2), Text: "3*[ ar:500 ] sync fork:300 3*[ !ar:500 ] sync"},
	{Group: "lives of processes", Name: "fork-and-exit", Args: on(2), Text: "3*[ ar:500 ] sync forkexit 3*[ !ar:500 ] sync"},
	{Group: "lives of processes", Name: "exec", Args: on(2), Text: "3*[ ar:500 ] sync exec 3*[ !ar:500 ] sync"},
	{Group: "lives of processes", Name: "timer", Args: on(2), Text: "timer:1000 20*[ !ar:500 ] sync timer:0 !ag:100"},
	{Group: "lives of processes", Name: "profiling-timer", Args: on(2), Text: "profile:1000 20*[ !ar:500 ] sync profile:0 !ag:100"},
	{Group: "lives of processes", Name: "handlers", Args: on(2), Text: "handlers 3*[ !ar:500 ] sync"},
	{Group: "lives of processes", Name: "killed", Args: on(2), Text: "3*[ ar:500 ] sync barrier 1?[ kill:KILL ] 0?[ ar:500 sync ]", Exit: 5, Unfinished: true},
	{Group: "lives of processes", Name: "terminated", Args: on(2), Text: "3*[ ar:500 ] sync barrier 1?[ kill:TERM ] 0?[ ar:500 sync ]", Exit: 5, Unfinished: true},
	{Group: "lives of processes", Name: "fault", Args: on(2), Text: "3*[ ar:500 ] sync barrier 1?[ kill:SEGV ] 0?[ ar:500 sync ]", Exit: 5, Unfinished: true},
	{Group: "lives of processes", Name: "fault-with-handlers", Args: on(2), Text: "handlers 3*[ ar:500 ] sync barrier 1?[ kill:ABRT ] 0?[ ar:500 sync ]", Exit: 5, Unfinished: true},
	{Group: "lives of processes", Name: "all-killed", Args: on(2), Text: "3*[ ar:500 ] sync barrier kill:KILL", Exit: 5, Unfinished: true},
}
