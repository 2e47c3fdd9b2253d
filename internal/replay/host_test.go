// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/replay/replaytest"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

const recordings = "../../testdata/nccl-callbacks"

// names are the recordings kept with the project.
var names = []string{
	"01-allreduce-2p", "02-allcoll-4p-net", "03-onethread-4r-groups", "04-threads-4r", "05-p2p-3p",
	"06-twohosts-2x2", "07-twocomms-streams", "08-v5-nccl228-3p", "09-straggler-4p", "10-graph-3p",
	"11-starved-2p", "12-gpu-few-2p", "13-gpu-few-2p-v7",
}

// onGPU reports whether a recording was made on a real GPU, where the times of kernels are unknown.
func onGPU(name string) bool { return strings.Contains(name, "-gpu-few-2p") }

func load(t testing.TB, name string) *Recording {
	t.Helper()
	rec := testkit.Value(Load(filepath.Join(recordings, name)))(t)
	return rec
}

// play plays a recording to the recording plugin. It also returns the plugin's output folder.
func play(t testing.TB, rec *Recording, opt Options) (*Result, string) {
	t.Helper()
	dir := replaytest.Build(t, "")
	if opt.Host == "" {
		opt.Host = filepath.Join(dir, HostFile)
	}
	if opt.Plugin == "" {
		opt.Plugin = filepath.Join(strings.TrimSuffix(opt.Host, HostFile), "librecorder.so")
	}
	out := t.TempDir()
	opt.Env = append([]string{"RECORDER_DIR=" + out}, opt.Env...)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	res := testkit.Value(Run(ctx, rec, opt))(t)
	return res, out
}

// mustPlay is play, and fails the test if a host fails or the plugin reports an error.
func mustPlay(t testing.TB, rec *Recording, opt Options) (*Result, string) {
	t.Helper()
	res, out := play(t, rec, opt)
	testkit.Must(t, res.Err())
	if sum := res.Total(); sum.Errors != 0 || sum.Unwritten != 0 {
		t.Fatalf("faults of the plugin: %d errors, %d handles unwritten", sum.Errors, sum.Unwritten)
	}
	return res, out
}

// heard is one line of the recording plugin.
type heard struct {
	F            string
	TID          int `json:"tid"`
	Thread       string
	T            uint64
	Ctx          descriptor.Pointer
	CommID       descriptor.Pointer `json:"commId"`
	CommName     *string
	NNodes       int
	NRanks       int
	Rank         int
	MaskBefore   int
	Mask         int
	Cuda, Device int
	UUID, PCI    string
	TypeName     string
	ParentObj    descriptor.Pointer
	HandleBefore descriptor.Pointer
	D            map[string]any
	H            descriptor.Pointer
	State        int
	StateName    string
	Args         *struct {
		U64 uint64
		I32 int
	}
}
