// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

func env(vars ...string) Lookup {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o666))
	return path
}

// The preset masks, as numbers: bits 0-2 and 8-11; and bit 6; and bits 3, 4; and bits 5, 7, 12-15.
const (
	light = 0x0f07
	gpu   = 0x0f47
	net   = 0x0f5f
	all   = 0xffff
)

func TestDefaults(t *testing.T) {
	s := testkit.Value(Load(env()))(t)
	testkit.Check(t, s.Dir == "" && s.Events == gpu && s.Ranks == nil && s.Unify && !s.Tables && s.CPUs == nil &&
		!s.Debug && s.Enable && !s.Record && !s.Paused && s.Window == nil && !s.Channels && s.Metrics && s.NVML == 0 &&
		s.TimeService && s.CUPTI == 0 && s.CUPTILibrary == "" && s.Scorep == "auto" && s.Disk == 0 &&
		s.Ring == "memfd" && s.Memory == 256<<20 && s.StartLimit == 2 && s.Clock == "auto" && s.Collector == "" &&
		s.Config == "", "%+v", s)
	want := map[string]string{
		"EVENTS": "gpu", "MODE": "trace", "PROFILE_INTERVAL": "off", "RAW": "off", "START": "on", "CHANNELS": "off",
		"CUPTI": "off", "METRICS": "on", "NVML": "off", "TIME_SERVICE": "auto", "UNIFY": "auto", "TABLES": "off",
		"BACKLOG": "auto", "DEBUG": "off", "ENABLE": "on",
		"MEMORY": "256MiB", "RING": "memfd", "CLOCK": "auto", "START_LIMIT": "2", "SCOREP": "auto",
	}
	testkit.Same(t, want, s.Texts())
	e := s.Environment()
	testkit.Check(t, len(e) == 0, "environment %v", e)
}

func TestEnvironmentOverFileOverDefault(t *testing.T) {
	for _, tc := range []struct{ name, text string }{
		{"a.yaml",
			"events: [net, NetPlugin]\nmemory: 1GiB\nunify: off\ncpus: [3, 1]\ndebug: true\ndir: /from/file\nranks: " +
				"0-3\n"},
		{"a.yml",
			"EVENTS: net NetPlugin\nMEMORY: 1G\nUNIFY: \"off\"\nCPUS: 1,3\nDebug: 1\nDIR: /from/file\nranks: [0, " +
				"1-3]\n"},
		{"a.toml",
			"events = \"net,netplugin\"\nmemory = 1073741824\nunify = \"OFF\"\ncpus = [1, 3]\ndebug = true\ndir = " +
				"\"/from/file\"\nranks = \"0-3\"\n"},
		{"a.json",
			`{"events": ["net", "NetPlugin"], "memory": "1024MB", "unify": "off", "cpus": "1 3", "debug": "yes", "dir": "/from/file", "ranks": "0-3"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := file(t, tc.name, tc.text)
			s := testkit.Value(Load(env("NCCL_OTF2_CONFIG="+path, "NCCL_OTF2_DIR=/from/env", "NCCL_OTF2_EVENTS=")))(t)
			testkit.Check(t, s.Dir == "/from/env" && s.Events == net|1<<7 && s.Memory == 1<<30 && !s.Unify && s.Debug &&
				s.Config == path, "%+v", s)
			testkit.Check(t, s.CPUs.Has(1) && !s.CPUs.Has(2) && s.CPUs.Has(3) && s.Ranks.Has(2) && !s.Ranks.Has(4),
				"cpus %v, ranks %v", s.CPUs, s.Ranks)
			// What the plugin must learn from the environment.
			e := s.Environment()
			testkit.Check(t, len(e) == 1 && strings.HasPrefix(e[0], "NCCL_OTF2_MEMORY=1"), "environment %v", e)
		})
	}
}

func TestErrorsNameTheirPlace(t *testing.T) {
	var said strings.Builder
	for _, tc := range []struct {
		name string
		vars []string
		file string // name:content

	}{
		{"event", []string{"NCCL_OTF2_EVENTS=Coll,Kernel"}, ""},
		{"size", []string{"NCCL_OTF2_MEMORY=lots"}, ""},
		{"no time", []string{"NCCL_OTF2_START_LIMIT=0"}, ""},
		{"small size", []string{"NCCL_OTF2_MEMORY=1M"}, ""},
		{"huge size", []string{"NCCL_OTF2_MEMORY=99999999999G"}, ""},
		{"choice", []string{"NCCL_OTF2_UNIFY=maybe"}, ""},
		{"switch", []string{"NCCL_OTF2_DEBUG=2"}, ""},
		{"range", []string{"NCCL_OTF2_CPUS=7-4"}, ""},
		{"no number", []string{"NCCL_OTF2_RANKS=,"}, ""},
		{"window", []string{"NCCL_OTF2_WINDOW=1000-2000"}, ""},
		{"window without numbers", []string{"NCCL_OTF2_WINDOW=ops:-"}, ""},
		{"window of a word", []string{"NCCL_OTF2_WINDOW=ops:few-"}, ""},
		{"empty window", []string{"NCCL_OTF2_WINDOW=ops:7-7"}, ""},
		{"window and pause", []string{"NCCL_OTF2_WINDOW=ops:7-8", "NCCL_OTF2_START=paused"}, ""},
		{"mode", []string{"NCCL_OTF2_MODE=raw"}, ""},
		{"disk", []string{"NCCL_OTF2_DISK=-1"}, ""},
		{"ring", nil, "c.yaml:ring: disk\n"},
		{"mask", []string{"NCCL_PROFILE_EVENT_MASK=0xzz"}, ""},
		{"unknown key", nil, "c.yaml:evnets: gpu\n"},
		{"prefixed key", nil, "c.yaml:nccl_otf2_dir: x\n"},
		{"far key", nil, "c.yaml:compression: 9\n"},
		{"nested key", nil, "c.yaml:events:\n  gpu: true\n"},
		{"config in file", nil, "c.yaml:config: other.yaml\n"},
		{"value in file", nil, "c.toml:events = \"cpu\"\n"},
		{"not yaml", nil, "c.yaml:a: [\n"},
		{"not json", nil, "c.json:{"},
		{"ending", nil, "c.ini:events=gpu\n"},
		{"no file", []string{"NCCL_OTF2_CONFIG=/does/not/exist.yaml"}, ""},
	} {
		vars, hide := tc.vars, strings.NewReplacer()
		if name, text, ok := strings.Cut(tc.file, ":"); ok {
			path := file(t, name, text)
			vars, hide = append(vars, "NCCL_OTF2_CONFIG="+path), strings.NewReplacer(filepath.Dir(path), "DIR")
		}
		_, err := Load(env(vars...))
		testkit.Require(t, err != nil && !strings.Contains(err.Error(), "\n"), "%s: %v", tc.name, err)
		fmt.Fprintf(&said, "%s: %s\n", tc.name, hide.Replace(err.Error()))
	}
	golden.Text(t, "testdata/errors.txt", said.String())
}

// A variable with nothing but blanks is as if it were not there, and so is a value of a file.
func TestBlankIsUnset(t *testing.T) {
	path := file(t, "a.yaml", "memory: 1G\nevents: ' '\nstart_limit: ''\ncpus: []\ndir: ' x '\n")
	s, err := Load(env("NCCL_OTF2_CONFIG="+path, "NCCL_OTF2_MEMORY= \t"))
	testkit.Check(t, err == nil && s.Memory == 1<<30 && s.Events == gpu && s.StartLimit == 2 && s.CPUs == nil &&
		s.Dir == " x ", "%+v, %v", s, err)
	s, err = Load(env("NCCL_OTF2_MEMORY= 512 M\n", "NCCL_OTF2_EVENTS=  ", "NCCL_OTF2_RING=\tShm ",
		"NCCL_PROFILE_EVENT_MASK= 3 "))
	testkit.Check(t, err == nil && s.Memory == 512<<20 && s.Events == 3 && s.Ring == "shm", "%+v, %v", s, err)
}

func TestEventMasks(t *testing.T) {
	for _, tc := range []struct {
		vars []string
		want uint32
	}{
		{[]string{"NCCL_OTF2_EVENTS=light"}, light},
		{[]string{"NCCL_OTF2_EVENTS=gpu"}, gpu},
		{[]string{"NCCL_OTF2_EVENTS=net"}, net},
		{[]string{"NCCL_OTF2_EVENTS=ALL"}, all},
		{[]string{"NCCL_OTF2_EVENTS=coll, KERNELPHASE"}, 1<<1 | 1<<15},
		{[]string{"NCCL_PROFILE_EVENT_MASK=3"}, 3},
		{[]string{"NCCL_PROFILE_EVENT_MASK=0XF00"}, 0xf00},
		{[]string{"NCCL_PROFILE_EVENT_MASK=0xffffffff"}, 0xffff},
		{[]string{"NCCL_PROFILE_EVENT_MASK=3", "NCCL_OTF2_EVENTS=light"}, light},
		{[]string{"NCCL_PROFILE_EVENT_MASK=0"}, 0},
	} {
		s, err := Load(env(tc.vars...))
		testkit.Check(t, err == nil && s.Events == tc.want, "%v: %#x, %v; want %#x", tc.vars, s.Events, err, tc.want)
	}
}

func TestWindows(t *testing.T) {
	for text, want := range map[string]Window{
		"ops:1000-2000": {1000, 2000},
		"ops:1000-":     {1000, math.MaxUint64},
		"OPS:-2000":     {0, 2000},
		"ops:0-1":       {0, 1},
	} {
		s, err := Load(env("NCCL_OTF2_WINDOW=" + text))
		testkit.Check(t, err == nil && s.Window != nil && *s.Window == want, "%s: %+v, %v", text, s, err)
	}
}

func TestRunTimeSettings(t *testing.T) {
	s, err := Load(env("NCCL_OTF2_MODE=Record", "NCCL_OTF2_START=paused", "NCCL_OTF2_DISK=2G", "NCCL_OTF2_RING=shm",
		"NCCL_OTF2_CHANNELS=on"))
	testkit.Check(t, err == nil && s.Record && s.Paused && s.Disk == 2<<30 && s.Ring == "shm" && s.Channels,
		"%+v, %v", s, err)
	// What the plugin reads itself must get into its environment.
	s, err = Load(env("NCCL_OTF2_CONFIG=" + file(t, "a.yaml", "ring: shm\nmode: record\n")))
	testkit.Check(t, err == nil && slices.Equal(s.Environment(), []string{"NCCL_OTF2_RING=shm"}),
		"%v, %v", s.Environment(), err)
}

func TestActivities(t *testing.T) {
	const kernels = 1<<10 | 1<<4 | 1<<39
	for text, want := range map[string]uint64{
		"off": 0, "0": 0, "on": kernels, "1": kernels, "memcpy": kernels | 1<<1 | 1<<22, "MEMSET": kernels | 1<<2,
		"sync, memory": kernels | 1<<38 | 1<<49, "all": kernels | 1<<1 | 1<<22 | 1<<2 | 1<<38 | 1<<49, " , ": 0,
	} {
		s, err := Load(env("NCCL_OTF2_CUPTI=" + text))
		testkit.Check(t, err == nil && s.CUPTI == want, "%q: %#x, %v; want %#x", text, s.CUPTI, err, want)
	}
	for _, text := range []string{"kernels", "memcpy,nvtx", "on,memcpy", "all,memcpy"} {
		_, err := Load(env("NCCL_OTF2_CUPTI=" + text))
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "NCCL_OTF2_CUPTI"), "%q: %v", text, err)
	}
}

func TestParseEvents(t *testing.T) {
	mask, err := ParseEvents("light,KernelCh")
	testkit.Check(t, err == nil && mask == gpu, "%#x, %v", mask, err)
	for _, text := range []string{"", ", ", "gpu,Kernel"} {
		_, err := ParseEvents(text)
		testkit.Check(t, err != nil, "%q is taken", text)
	}
}

func TestEventListsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.Uint32Range(1, 0xffff).Draw(t, "mask")
		if rapid.Bool().Draw(t, "sums") {
			mask |= api.Preset("net") | api.NetSumsBit
		}
		got, err := parseEvents(EventList(mask))
		if err != nil || got != mask {
			t.Fatalf("%#x became %q and %#x, %v", mask, EventList(mask), got, err)
		}
	})
}

func TestDirectory(t *testing.T) {
	for _, tc := range []struct {
		name string
		vars []string
		want string
	}{
		{"nothing", nil, "nccl-otf2-00000000000000ab"},
		{"setting", []string{"NCCL_OTF2_DIR=/x/y", "SLURM_JOB_ID=1"}, "/x/y"},
		{"slurm batch", []string{"SLURM_JOB_ID=12"}, "nccl-otf2-12"},
		{"slurm step", []string{"SLURM_JOB_ID=12", "SLURM_STEP_ID=3"}, "nccl-otf2-12.3"},
		{"slurm restart", []string{"SLURM_JOB_ID=12", "SLURM_STEP_ID=3", "SLURM_RESTART_COUNT=1",
			"TORCHELASTIC_RUN_ID=x"}, "nccl-otf2-12.3.1"},
		{"slurm restart of a batch script", []string{"SLURM_JOB_ID=12", "SLURM_RESTART_COUNT=1"}, "nccl-otf2-12.1"},
		{"shell of salloc", []string{"SLURM_JOB_ID=12", "SLURM_STEP_ID=4294967290"}, "nccl-otf2-12"},
		{"pmix", []string{"PMIX_NAMESPACE=prterun-a/1@1"}, "nccl-otf2-prterun-a_1@1"},
		{"lsf", []string{"LSB_JOBID=77"}, "nccl-otf2-77"},
		{"pbs", []string{"PBS_JOBID=77.server"}, "nccl-otf2-77.server"},
		{"flux", []string{"FLUX_JOB_ID=f23"}, "nccl-otf2-f23"},
		{"torchrun", []string{"TORCHELASTIC_RUN_ID=run-9", "TORCHELASTIC_RESTART_COUNT=2"}, "nccl-otf2-run-9.2"},
		{"torchrun without id", []string{"TORCHELASTIC_RUN_ID=none", "TORCHELASTIC_RESTART_COUNT=0"},
			"nccl-otf2-00000000000000ab"},
	} {
		s := testkit.Value(Load(env(tc.vars...)))(t)
		testkit.Equal(t, s.Directory(env(tc.vars...), 0xab), tc.want, "%s", tc.name)
	}
}

func TestLauncher(t *testing.T) {
	for _, tc := range []struct {
		vars string
		want Launcher
	}{
		{"", Launcher{"", -1, -1}},
		{"SLURM_PROCID=3 SLURM_NTASKS=8", Launcher{"slurm", 3, 8}},
		{"SLURM_JOB_ID=12 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=8", Launcher{"slurm", 0, 8}},
		// A batch script, and a shell of salloc: what they start is not task 0 of 8.
		{"SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_NTASKS=8", Launcher{"", -1, -1}},
		{"SLURM_JOB_ID=12 SLURM_STEP_ID=4294967290 SLURM_PROCID=0 SLURM_NTASKS=8", Launcher{"", -1, -1}},
		{"SLURM_JOB_ID=12 SLURM_PROCID=0 SLURM_NTASKS=8 PMI_RANK=3 PMI_SIZE=4", Launcher{"pmi", 3, 4}},
		{"PMIX_RANK=1", Launcher{"pmix", 1, -1}},
		{"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=2 PMI_RANK=2 PMI_SIZE=4", Launcher{"openmpi", 2, 4}},
		{"PMI_RANK=0 PMI_SIZE=1", Launcher{"pmi", 0, 1}},
		{"MV2_COMM_WORLD_RANK=5 MV2_COMM_WORLD_SIZE=6", Launcher{"mvapich2", 5, 6}},
		{"FLUX_TASK_RANK=0 FLUX_JOB_SIZE=2", Launcher{"flux", 0, 2}},
		{"RANK=7 WORLD_SIZE=16", Launcher{"torchrun", 7, 16}},
		// torchrun started once per node by srun: the agent's Slurm variables name the node.
		{"SLURM_PROCID=1 SLURM_NTASKS=2 TORCHELASTIC_RUN_ID=none RANK=7 WORLD_SIZE=16", Launcher{"torchrun", 7, 16}},
		{"SLURM_PROCID=x RANK=0 WORLD_SIZE=2", Launcher{"torchrun", 0, 2}},
		{"RANK=4 WORLD_SIZE=2", Launcher{"torchrun", 4, -1}},
		{"RANK=-1", Launcher{"", -1, -1}},
	} {
		testkit.Equal(t, FindLauncher(env(strings.Fields(tc.vars)...)), tc.want, "%s", tc.vars)
	}
}

// Every row is documented, has a value that its own parser takes, and changes something.
func TestTableIsComplete(t *testing.T) {
	text := markdown()
	for i := range Table {
		row := &Table[i]
		testkit.Check(t, row.Key == strings.ToUpper(row.Key) && row.Help != "" && strings.HasSuffix(row.Help, ".") &&
			row.parse != nil, "row %s is incomplete", row.Key)
		if row.Default != "" {
			err := row.checkValue(&Settings{}, row.Default)
			testkit.Check(t, err == nil, "default of %s: %v", row.Key, err)
		}
		testkit.Check(t, row.Kind != Choice || len(row.Choices) >= 2, "%s has no choice", row.Key)
		testkit.Check(t, strings.Count(text, "| `NCCL_OTF2_"+row.Key+"` |") == 1,
			"%s is not in the documentation once", row.Key)
	}
	testkit.Check(t, strings.Count(text, "\n| `NCCL_OTF2_") == len(Table), "%v", text)
}

func TestPeriods(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"off": 0, "on": 100 * time.Millisecond, "1": 100 * time.Millisecond, "on:10ms": 10 * time.Millisecond,
		"ON:1.5s": 1500 * time.Millisecond, "on:1m": time.Minute,
	} {
		s, err := Load(env("NCCL_OTF2_NVML=" + text))
		testkit.Check(t, err == nil && s.NVML == want, "%s: %v, %v", text, s, err)
	}
	for _, text := range []string{"off:1s", "50ms", "on:", "on:50", "on:9ms", "on:-1s", "on:61s", "on:1s:1s", "maybe"} {
		_, err := Load(env("NCCL_OTF2_NVML=" + text))
		testkit.Check(t, err != nil && strings.HasPrefix(err.Error(), "NCCL_OTF2_NVML: "), "%s: %v", text, err)
	}
	s, err := Load(env("NCCL_OTF2_CONFIG=" + file(t, "a.yaml", "nvml: on:20ms\nmetrics: off\n")))
	testkit.Check(t, err == nil && s.NVML == 20*time.Millisecond && !s.Metrics, "from a file: %+v, %v", s, err)
}

// Numbers of a JSON file are as they are written, and a setting is there once.
func TestValuesOfFiles(t *testing.T) {
	s, err := Load(env("NCCL_OTF2_CONFIG=" + file(t, "a.json", `{"Memory": 1073741824, "nvml": null}`)))
	testkit.Check(t, err == nil && s.Memory == 1<<30 && s.NVML == 0, "%+v, %v", s, err)
	for name, text := range map[string]string{
		"twice.yaml": "ring: shm\nRing: memfd\n", "more.json": `{"ring": "shm"} {}`, "list.yaml": "- ring\n",
		"table.toml": "[ring]\n", "date.toml": "dir = 2026-01-02\n",
	} {
		s, err := Load(env("NCCL_OTF2_CONFIG=" + file(t, name, text)))
		testkit.Check(t, err != nil && strings.Contains(err.Error(), name+": "), "%s: %+v, %v", name, s, err)
	}
}

// net-sums is net with another form of writing it down; the form is none of the events that are recorded, and goes with others, too.
func TestNetSums(t *testing.T) {
	for text, want := range map[string]string{"net-sums": "net-sums", "Net-Sums, light": "net-sums",
		"all net-sums": "all,net-sums", "net": "net",
		"ProxyCtrl,net-sums": "Group,Coll,P2p,ProxyOp,ProxyStep,ProxyCtrl,KernelCh,GroupApi,CollApi,P2pApi,KernelLaunch,net-sums"} {
		s := testkit.Value(Load(env("NCCL_OTF2_EVENTS=" + text)))(t)
		if s.NetSums != (text != "net") || s.Events&net != net || s.Events>>len(events) != 0 || s.EventsText() != want {
			t.Errorf("%s: events %#x, sums %v, text %q", text, s.Events, s.NetSums, s.EventsText())
		}
		again, err := Load(env("NCCL_OTF2_EVENTS=" + want))
		testkit.Check(t, err == nil && again.Events == s.Events && again.NetSums == s.NetSums,
			"%s is not what %s is", want, text)
	}
	if _, err := ParseEvents("net-sums"); err == nil || !strings.Contains(err.Error(), "settled when the job begins") {
		t.Errorf("as a list of types: %v", err)
	}
}

// A name is near another one that differs by a slip of the hand; there need not be one.
func TestNear(t *testing.T) {
	names := []string{"top", "report", "timeline", "query"}
	for name, want := range map[string]string{"foo": "", "tpo": "top", "to": "top", "reprot": "report",
		"rport": "report", "reports": "report", "x": "", "": "", "tmeline": "timeline", "clocks": "", "metrics": ""} {
		testkit.Equal(t, NearestName(name, names), want, "%q", name)
	}
}

// A variable that is nearly a setting's would be without effect, and is refused; others are nobody's business.
func TestMistyped(t *testing.T) {
	for name, want := range map[string]string{
		"NCCL_OTF2_MEMROY": "unknown setting NCCL_OTF2_MEMROY, did you mean NCCL_OTF2_MEMORY?",
		"NCCL_OTF2_EVENT":  "unknown setting NCCL_OTF2_EVENT, did you mean NCCL_OTF2_EVENTS?",
		"NCCL_OTF2_MEMORY": "", "NCCL_OTF2_CONFIG": "", "NCCL_OTF2_HOME": "", "NCCL_OTF2_TEST_ROLE": "",
		"NCCL_OTF2_PLUGIN": "", "NCCL_EVENT": "", "OTF2_MEMROY": "",
	} {
		err := MistypedError([]string{"PATH", name})
		testkit.Check(t, (err != nil || want == "") && (err == nil || err.Error() == want),
			"%s: %v, want %q", name, err, want)
	}
}
