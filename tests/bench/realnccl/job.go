// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/tests/bench/usage"
)

// job is what one run took: times in microseconds, of rank 0.
type job struct {
	PID   int       `json:"pid"`
	Init  []float64 `json:"init_us"`  // of each communicator
	First []float64 `json:"first_us"` // the first operation of each, from the call to its end, or the call alone

	CallMean   float64 `json:"call_mean_us"` // of the calls in the loop
	CallMedian float64 `json:"call_median_us"`
	Loop       float64 `json:"loop_us"` // of the whole loop, per operation

	own, collector float64 // memory without what is shared, MiB
	processor      float64 // the collector's in the loop, microseconds per operation
}

// nccl are NCCL's settings for the emulated machine.
var nccl = []string{"NCCL_CUMEM_ENABLE=0", "NCCL_CUMEM_HOST_ENABLE=0", "NCCL_NVLS_ENABLE=0", "NCCL_SOCKET_IFNAME=lo",
	"NCCL_NET=Socket", "NCCL_IB_DISABLE=1",
	"NCCL_GRAPH_REGISTER=0", "NCCL_LOCAL_REGISTER=0", "NCCL_RAS_ENABLE=0", "NCCL_ALGO=Ring,Tree",
	"NCCL_PROTO=LL,Simple",
	"NCCL_ALLGATHERV_ENABLE=0"} // without it 2.29 and newer are not asked for GPU times

// request is what to run.
type request struct {
	plugin        *plugin
	communicators int
	operations    int
	call          string   // of the operations
	settings      []string // of NCCL
	spin          bool     // threads that wait do not nap
	oneByOne      bool     // first calls come one after the other
}

// settle is how long a collector gets to take what was recorded: longer than it ever waits with writing.
const settle = 2500 * time.Millisecond

// limit is how long a run may take.
const limit = 5 * time.Minute

func (b *bench) job(ctx context.Context, q request) (*job, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	how := "together"
	if q.oneByOne {
		how = "apart"
	}
	cmd := exec.CommandContext(ctx, b.program, strconv.Itoa(b.ranks), strconv.Itoa(q.communicators),
		strconv.Itoa(q.operations), how, q.call)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "NCCL_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, nccl...), "LD_LIBRARY_PATH="+b.bed)
	if !q.spin {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+filepath.Join(b.bed, "libyield.so"))
	}
	b.runs++
	dir := filepath.Join(b.dir, fmt.Sprintf("run-%d", b.runs))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	cmd.Env = append(append(cmd.Env, q.settings...), q.plugin.environment(b, dir)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	j, err := b.follow(q, bufio.NewReader(out), in)
	err = errors.Join(err, in.Close(), cmd.Wait())
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", q.plugin.title(), err, strings.TrimSpace(stderr.String()))
	}
	return j, nil
}

// follow reads what the job says, and looks at its first process and the collector beside it meanwhile.
func (b *bench) follow(q request, out *bufio.Reader, in io.Writer) (*job, error) {
	j := new(job)
	line := func() error {
		text, err := out.ReadBytes('\n')
		if err != nil {
			return err
		}
		return json.Unmarshal(text, j)
	}
	goOn := func() error { _, err := in.Write([]byte("\n")); return err }
	if err := line(); err != nil {
		return nil, err
	}
	collector := 0
	var before float64
	if q.plugin.ours || q.plugin.peer != nil {
		var err error
		if collector, err = q.plugin.collector(j.PID); err != nil {
			return nil, err
		}
	}
	if collector != 0 {
		time.Sleep(settle)
		before = usage.Processor(collector)
	}
	if err := errors.Join(goOn(), line()); err != nil {
		return nil, err
	}
	u, err := usage.Of(j.PID)
	if err != nil {
		return nil, err
	}
	j.own = float64(u.Own) / (1 << 20)
	if collector != 0 {
		time.Sleep(settle)
		j.processor = (usage.Processor(collector) - before) * 1e6 / float64(q.operations)
		if u, err = usage.Of(collector); err != nil {
			return nil, err
		}
		j.collector = float64(u.Own) / (1 << 20)
	}
	return j, goOn()
}

// collector finds the process beside a job. Another plugin may have none, or be an earlier version of ours.
func (p *plugin) collector(job int) (int, error) {
	if p.ours {
		return usage.Collector(job, 10*time.Second)
	}
	pid, err := usage.Collector(job, time.Second)
	if errors.Is(err, usage.ErrNoCollector) {
		return 0, nil
	}
	return pid, err
}
