# SPDX-License-Identifier: Apache-2.0
"""One rank of a PyTorch job that makes known NCCL calls and writes down what it called: the truth that gputest compares
the archive with. RANK and WORLD_SIZE come from the environment.

    job.py --mode collectives --store FILE --log FILE

The log is JSON, one object a line; times are ns of CLOCK_MONOTONIC_RAW. `f` says which:

start    what the process is: pid, torch, nccl, gpu, cuda
comm     a communicator of the calls below: name, ranks (world ranks in its order)
call     comm, op (NCCL's name; Batch: messages of one group), count and dtype as NCCL gets them (AlltoAll, Gather, Scatter:
         count for each peer), root (rank in comm, -1: none), messages ([Send or Recv, peer, count] of a Batch), t0 and t1
         around the call, done: when all of it had ended for certain; event_ns: between CUDA events around it; graph: it was
         captured into that graph and did not run
replay   graph, t0, t1, done: all calls captured into the graph ran once more
others   comm, until: before that time the framework made calls of its own
phase    name: a phase that was marked with nccl_otf2
profiler kernels: of NCCL's, that torch.profiler saw
cost     op, bytes, calls; host_ns and gpu_ns per call, a list of both
wrong    text: a result was not what it should be
hanging  the rank is about to wait for one that never comes
end      the job came to its end
"""
import argparse
import contextlib
import datetime
import json
import os
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import nccl_otf2  # noqa: E402

NCCL_TYPE = {
    torch.float32: "ncclFloat32", torch.float64: "ncclFloat64", torch.float16: "ncclFloat16", torch.bfloat16: "ncclBfloat16",
    torch.int8: "ncclInt8", torch.int32: "ncclInt32", torch.int64: "ncclInt64",
}
COUNTS = [1, 1000, 65536, 1 << 20]


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


class Job:
    def __init__(self, args):
        self.args = args
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.cuda = args.backend == "nccl"
        self.device = torch.device("cuda", 0) if self.cuda else torch.device("cpu")
        self.file = open(args.log, "w")
        self.pending, self.groups = [], {}
        line = {"pid": os.getpid(), "rank": self.rank, "size": self.size, "torch": torch.__version__}
        if self.cuda:
            torch.cuda.set_device(self.device)
            line["gpu"] = torch.cuda.get_device_name(0)
            line["cuda"] = torch.version.cuda
            line["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        self.write("start", t=now(), **line)

    def write(self, what, **fields):
        self.file.write(json.dumps({"f": what, **fields}) + "\n")
        self.file.flush()

    def init(self, eager=False):
        """Joins the ranks. NCCL makes the communicator with the first call, or now if eager; those of groups are then split
        from it."""
        more = {"device_id": self.device} if eager and self.cuda else {}
        dist.init_process_group(self.args.backend, init_method="file://" + os.path.abspath(self.args.store), rank=self.rank,
                                world_size=self.size, timeout=datetime.timedelta(seconds=60), **more)
        self.add_group("world", list(range(self.size)), dist.group.WORLD)

    def add_group(self, name, ranks, group):
        self.groups[name] = (group, ranks)
        self.write("comm", name=name, ranks=ranks)

    def new_group(self, name, ranks):
        group = dist.new_group(ranks)  # every rank must call it
        if self.rank in ranks:
            self.add_group(name, ranks, group)
        return self.rank in ranks

    def tensor(self, count, dtype=torch.float32, value=None):
        return torch.full((count,), self.rank + 1 if value is None else value, dtype=dtype, device=self.device)

    def call(self, comm, op, count, dtype, do, root=-1, messages=None, timed=False, graph=None):
        line = {"comm": comm, "op": op, "count": count, "dtype": NCCL_TYPE[dtype], "root": root}
        if messages is not None:
            line["messages"] = messages
        events = None
        if timed and self.cuda:
            events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(1_000_000)  # the GPU is busy until the call is enqueued, so that the events enclose its kernel only
            events[0].record()
        line["t0"] = now()
        do()
        line["t1"] = now()
        if events:
            events[1].record()
        if graph is not None:
            self.write("call", graph=graph, **line)
        else:
            self.pending.append(("call", line, events))

    def settle(self):
        """Waits until everything that was called has ended."""
        if self.cuda:
            torch.cuda.synchronize()
        done = now()
        for what, line, events in self.pending:
            if events:
                line["event_ns"] = round(events[0].elapsed_time(events[1]) * 1e6)
            self.write(what, done=done, **line)
        self.pending = []

    def expect(self, what, tensor, value):
        if not bool((tensor == value).all()):
            self.write("wrong", text=f"{what}: {tensor.flatten()[:4].tolist()} where all should be {value}")

    # Each operation on a group of the ranks in it, with its result checked.

    def all_reduce(self, comm, count, dtype=torch.float32, timed=False, check=True, **more):
        group, ranks = self.groups[comm]
        t = self.tensor(count, dtype)
        self.call(comm, "AllReduce", count, dtype, lambda: dist.all_reduce(t, group=group), timed=timed, **more)
        if check:
            self.settle()
            self.expect("AllReduce", t, sum(r + 1 for r in ranks))
        return t

    def all_gather(self, comm, count, dtype=torch.float32, timed=False):
        group, ranks = self.groups[comm]
        t, out = self.tensor(count, dtype), self.tensor(count * len(ranks), dtype, 0)
        self.call(comm, "AllGather", count, dtype, lambda: dist.all_gather_into_tensor(out, t, group=group), timed=timed)
        self.settle()
        for i, r in enumerate(ranks):
            self.expect("AllGather", out[i * count:(i + 1) * count], r + 1)

    def reduce_scatter(self, comm, count, dtype=torch.float32, timed=False):
        group, ranks = self.groups[comm]
        t, out = self.tensor(count * len(ranks), dtype), self.tensor(count, dtype, 0)
        self.call(comm, "ReduceScatter", count, dtype, lambda: dist.reduce_scatter_tensor(out, t, group=group), timed=timed)
        self.settle()
        self.expect("ReduceScatter", out, sum(r + 1 for r in ranks))

    def broadcast(self, comm, count, root, dtype=torch.float32, timed=False):
        group, ranks = self.groups[comm]
        t = self.tensor(count, dtype)
        self.call(comm, "Broadcast", count, dtype, lambda: dist.broadcast(t, ranks[root], group=group), root=root, timed=timed)
        self.settle()
        self.expect("Broadcast", t, ranks[root] + 1)

    def reduce(self, comm, count, root, dtype=torch.float32, timed=False):
        group, ranks = self.groups[comm]
        t = self.tensor(count, dtype)
        self.call(comm, "Reduce", count, dtype, lambda: dist.reduce(t, ranks[root], group=group), root=root, timed=timed)
        self.settle()
        if self.rank == ranks[root]:
            self.expect("Reduce", t, sum(r + 1 for r in ranks))

    def all_to_all(self, comm, count):
        group, ranks = self.groups[comm]
        t, out = self.tensor(count * len(ranks)), self.tensor(count * len(ranks), value=0)
        self.call(comm, "AlltoAll", count, t.dtype, lambda: dist.all_to_all_single(out, t, group=group))
        self.settle()
        for i, r in enumerate(ranks):
            self.expect("AlltoAll", out[i * count:(i + 1) * count], r + 1)

    def gather(self, comm, count, root):
        group, ranks = self.groups[comm]
        t, here = self.tensor(count), self.rank == ranks[root]
        parts = [self.tensor(count, value=0) for _ in ranks] if here else None
        self.call(comm, "Gather", count, t.dtype, lambda: dist.gather(t, parts, dst=ranks[root], group=group), root=root)
        self.settle()
        for r, part in zip(ranks, parts or []):
            self.expect("Gather", part, r + 1)

    def scatter(self, comm, count, root):
        group, ranks = self.groups[comm]
        t, here = self.tensor(count, value=0), self.rank == ranks[root]
        parts = [self.tensor(count, value=10 * r) for r in ranks] if here else None
        self.call(comm, "Scatter", count, t.dtype, lambda: dist.scatter(t, parts, src=ranks[root], group=group), root=root)
        self.settle()
        self.expect("Scatter", t, 10 * self.rank)

    def ring(self, comm, count):
        """One message to the next rank and one from the rank before, in a group."""
        group, ranks = self.groups[comm]
        me = ranks.index(self.rank)
        to, source = (me + 1) % len(ranks), (me - 1) % len(ranks)
        t, got = self.tensor(count), self.tensor(count, value=0)

        def do():
            for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, t, ranks[to], group),
                                                dist.P2POp(dist.irecv, got, ranks[source], group)]):
                work.wait()
        self.call(comm, "Batch", 0, t.dtype, do, messages=[["Send", to, count], ["Recv", source, count]])
        self.settle()
        self.expect("Recv", got, ranks[source] + 1)

    def profiler(self):
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        return torch.profiler.profile(activities=activities)

    def seen(self, profile):
        kernels = [e for e in profile.events() if str(e.device_type).endswith("CUDA") and "nccl" in e.name.lower()]
        self.write("profiler", kernels=len(kernels))

    @contextlib.contextmanager
    def phase(self, name):
        if nccl_otf2._plugin() is not None:
            self.write("phase", name=name)
        with nccl_otf2.phase(name):
            yield


def collectives(job, counts=COUNTS, burst=50):
    job.init()
    root = job.size - 1
    for count in counts:
        for timed in (False, True):
            job.all_reduce("world", count, timed=timed)
            job.all_gather("world", count, timed=timed)
            job.reduce_scatter("world", count, timed=timed)
            job.reduce("world", count, root, timed=timed)
    for dtype in NCCL_TYPE:
        job.all_reduce("world", 5000, dtype)
    for _ in range(burst):  # without waiting in between
        job.all_reduce("world", 2000, check=False)
    job.settle()
    # On a communicator of their own, because some releases of NCCL give the operations after them wrong GPU stamps.
    job.new_group("broadcasts", list(range(job.size)))
    for count in counts:
        job.broadcast("broadcasts", count, root, timed=count > 1)


def few(job):
    """Few enough for a recording that is kept."""
    collectives(job, [1000, 65536], 3)


def exchange(job):
    job.init()
    job.all_reduce("world", 100)
    for count in COUNTS:
        job.ring("world", count)
    job.new_group("exchange", list(range(job.size)))
    for count in COUNTS[1:]:
        job.all_to_all("exchange", count)
        job.gather("exchange", count, 0)
        job.scatter("exchange", count, job.size - 1)


def groups(job):
    job.init(eager=True)
    job.all_reduce("world", 1000)
    names = [("first two", [0, 1]), ("last two", [job.size - 2, job.size - 1]), ("all", list(range(job.size)))]
    mine = [name for name, ranks in names if job.new_group(name, ranks)]
    for count in COUNTS:
        for name in mine:
            job.all_reduce(name, count)
            job.all_gather(name, count)
        job.all_reduce("world", count)


def training(job, steps=8):
    job.init()
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).to(job.device)
    ddp = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1, broadcast_buffers=False)

    def hook(_, bucket):
        t, work = bucket.buffer().div_(job.size), []
        job.call("world", "AllReduce", t.numel(), t.dtype, lambda: work.append(dist.all_reduce(t, async_op=True)))
        return work[0].get_future().then(lambda future: future.value()[0])

    ddp.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
    for step in range(-3, steps):  # the first ones make buckets anew, with calls of the framework's own
        with job.phase(f"step {step}") if step >= 0 else contextlib.nullcontext():
            batch = torch.full((16, 512), (job.rank + 1) / 100, device=job.device)
            with job.phase("forward") if step >= 0 else contextlib.nullcontext():
                loss = ddp(batch).square().mean()
            with job.phase("backward") if step >= 0 else contextlib.nullcontext():
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
        job.settle()
        if step == -1:
            job.write("others", comm="world", until=now())
    first = next(model.parameters()).detach().flatten()[:100]
    gathered = torch.zeros(job.size * first.numel(), device=job.device)
    job.call("world", "AllGather", first.numel(), first.dtype, lambda: dist.all_gather_into_tensor(gathered, first))
    job.settle()
    for part in gathered.chunk(job.size):
        if not torch.equal(part, first):
            job.write("wrong", text="parameters differ between ranks after training")


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((16,), float(i * i))


def loader(job):
    """Worker processes are forked while the plugin records."""
    job.init()
    job.all_reduce("world", 1000)
    for _ in range(3):
        data = torch.utils.data.DataLoader(Squares(), batch_size=8, num_workers=2, multiprocessing_context="fork")
        for i, batch in enumerate(data):
            job.expect("DataLoader", batch[:, 0], torch.tensor([float(k * k) for k in range(8 * i, 8 * i + 8)]))
            job.all_reduce("world", 1000)


def graphs(job):
    os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "0")  # PyTorch's documentation asks for it with graphs
    job.init()
    t, u = job.tensor(3000), job.tensor(70000)
    group = job.groups["world"][0]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            job.all_reduce("world", 500)
    torch.cuda.synchronize()
    captured = []
    for i, tensors in enumerate([[t], [t, u]]):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for x in tensors:
                job.call("world", "AllReduce", x.numel(), x.dtype, lambda x=x: dist.all_reduce(x, group=group), graph=i)
        captured.append(graph)

    def replay(i):
        line = {"graph": i, "t0": now()}
        captured[i].replay()
        line["t1"] = now()
        job.pending.append(("replay", line, None))

    t.fill_(1), u.fill_(1)
    for _ in range(5):
        replay(0)
        job.settle()
    job.expect("replayed AllReduce", t, job.size ** 5)
    for _ in range(5):
        replay(1)
        t.fill_(1)
        job.all_reduce("world", 500)
    for _ in range(10):  # without waiting in between
        replay(0)
    job.settle()
    for graph in captured:
        graph.reset()
    captured.clear()


def profiled(job):
    """torch.profiler is there first: CUPTI is taken when the plugin comes."""
    with job.profiler() as profile:
        torch.ones(10, device=job.device).sum().item()
        job.init()
        for count in COUNTS:
            job.all_reduce("world", count)
    job.seen(profile)


def profiled_later(job):
    """torch.profiler comes when the plugin is at work."""
    job.init()
    job.all_reduce("world", 1000)
    with job.profiler() as profile:
        for count in COUNTS:
            job.all_reduce("world", count)
    job.seen(profile)
    job.all_reduce("world", 1000)


LATE = 1  # the rank that others wait for


def late(job, delay):
    """Every third time, one rank is late by about 15 ms."""
    job.init()
    for i in range(31):
        if i % 3 == 1 and job.rank == LATE:
            delay()
        job.all_reduce("world", 65536)


def late_host(job):
    late(job, lambda: time.sleep(0.015))


def late_gpu(job):
    """It calls in time, but its stream has something else to do first."""
    late(job, lambda: torch.cuda._sleep(25_000_000))


def late_never(job):
    """All do the same."""
    late(job, lambda: None)


def trees(job):
    """AllReduces by NCCL's tree, where ranks have sent their part long before they have the result."""
    os.environ["NCCL_ALGO"] = "allreduce:tree"
    job.init()
    for count in COUNTS:
        for timed in (False, True):
            job.all_reduce("world", count, timed=timed)
    for i in range(31):
        if i % 3 == 1 and job.rank == LATE:
            time.sleep(0.015)
        job.all_reduce("world", 1000)


def hang(job):
    """One rank never makes the last call. Somebody has to end the job."""
    job.init()
    for _ in range(5):
        job.all_reduce("world", 1000)
    job.write("hanging")
    if job.rank != LATE:
        job.all_reduce("world", 1000)
    time.sleep(300)


def cost(job):
    """Time per call, on the host until it returns and on the GPU, of calls that are made without waiting in between."""
    job.init()
    for size, calls in ((8, 20), (4096, 20), (256 << 10, 10), (4 << 20, 5), (64 << 20, 2)):
        t = torch.zeros(size // 4, device=job.device)
        parts = torch.zeros(job.size * t.numel(), device=job.device) if size in (4096, 4 << 20) else None
        for op in ("AllReduce", "AllGather") if parts is not None else ("AllReduce",):
            host, gpu = [], []
            for i in range(job.args.repeat + 1):
                events = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                torch.cuda.synchronize()
                events[0].record()
                t0 = now()
                for _ in range(calls):
                    if op == "AllReduce":
                        dist.all_reduce(t)
                    else:
                        dist.all_gather_into_tensor(parts, t)
                t1 = now()
                events[1].record()
                torch.cuda.synchronize()
                if i > 0:  # the first is to get warm
                    host.append((t1 - t0) / calls)
                    gpu.append(events[0].elapsed_time(events[1]) * 1e6 / calls)
            job.write("cost", op=op, bytes=size, calls=calls, host_ns=host, gpu_ns=gpu)


MODES = {f.__name__.replace("_", "-"): f for f in
         (collectives, few, exchange, groups, training, loader, graphs, profiled, profiled_later, late_host, late_gpu, late_never, trees, hang,
          cost)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mode", required=True, choices=sorted(MODES))
    parser.add_argument("--store", required=True, help="file through which the ranks meet; absent at first")
    parser.add_argument("--log", required=True)
    parser.add_argument("--backend", default="nccl", choices=["nccl", "gloo"], help="gloo: a dry run on the CPU")
    parser.add_argument("--keep", action="store_true", help="do not destroy the process groups, as many programs")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each cost")
    job = Job(parser.parse_args())
    MODES[job.args.mode](job)
    job.settle()
    time.sleep(0.1)  # NCCL reports the end of kernels from a thread of its own, which destroying ends
    if not job.args.keep:
        dist.destroy_process_group()
    job.write("end", t=now())


if __name__ == "__main__":
    main()
