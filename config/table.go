// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// Prefix is the prefix of environment variables that are settings.
const Prefix = "NCCL_OTF2_"

// Kind is the syntax of a setting's value.
type Kind string

// Kinds of settings.
const (
	Path    Kind = "path"
	Switch  Kind = "on/off"
	Size    Kind = "size"   // "256M", "1GiB"
	Choice  Kind = "choice" // one of Setting.Choices
	Events  Kind = "events" // preset, or names of events
	Numbers Kind = "list"   // "0,4-7"
	Seconds Kind = "seconds"
	Ordinal Kind = "window"         // "ops:1000-2000"
	Kinds   Kind = "kinds"          // on, off, all, or names of activities
	Period  Kind = "off, period"    // "10m"
	Periods Kind = "on/off, period" // "on:50ms"
)

// problemText returns the message that follows an invalid value, also in the plugin.
func (k Kind) problemText() string {
	switch k {
	case Switch:
		return "is neither on nor off"
	case Size:
		return "is not a size such as 256M or 1GiB"
	case Events:
		return "is not a list of presets (" + strings.Join(wordNames(presets), ", ") + ") and events"
	case Seconds:
		return "is not a number of seconds"
	case Ordinal:
		return "is not a window such as ops:1000-2000, ops:1000- or ops:-2000"
	case Kinds:
		return UnknownText(append([]string{"off", "on", allActivitiesWord}, wordNames(activityWords)...))
	}
	return ""
}

// UnknownText returns the message that follows an unknown word: is unknown; use a, b or c.
func UnknownText(words []string) string {
	last := len(words) - 1
	return "is unknown; use " + strings.Join(words[:last], ", ") + " or " + words[last]
}

// Setting is one row of the table. plugin/settings.c has parsers for the kinds that the plugin reads, too. The words,
// units and bounds of both are in the tables of this package, from which `make generate` generates the plugin's.
type Setting struct {
	Key     string
	Default string // as a user would write it; "" means unset
	Kind    Kind
	Choices []string
	Early   bool   // the plugin reads it, only from the environment
	Alone   bool   // the plugin reads it if it has no collector
	Least   uint64 // lower bound of sizes and seconds
	Most    uint64 // 0: no bound
	Help    string

	parse func(s *Settings, value string) error
}

// Env returns the name of the environment variable.
func (row *Setting) Env() string { return Prefix + row.Key }

// Table lists all settings. Do not modify it.
var Table = []Setting{
	{Key: "DIR", Kind: Path, Alone: true,
		Help:  "Experiment directory. Default: `nccl-otf2-<id>` in the working directory, where id names the job step and attempt (Slurm, PMIx, LSF, PBS, Flux, torchrun), otherwise the first communicator.",
		parse: func(s *Settings, v string) error { s.Dir = v; return nil }},
	{Key: "EVENTS", Default: "gpu", Kind: Events, Alone: true,
		Help:  "What to record: a preset (`light`: calls and operations; `gpu`: with GPU times; `net`: with network activity; `net-sums`: the same, with the steps of transfers summed up by operation and peer, a tenth of the data; `all`), or a list of NCCL's event names. Presets and names can be mixed.",
		parse: parseEventsSetting},
	{Key: "MODE", Default: "trace", Kind: Choice, Choices: []string{"trace", "profile", "record"},
		Help:  "`trace`: make an archive. `profile`: sum events up instead of writing them, for runs of any length; makes a CUBE profile and figures by operation, and CHANNELS, RAW, METRICS, NVML and DISK have no effect. `record`: write NCCL's callbacks down as they come, for `nccl-otf2 replay`; no archive, and EVENTS has no effect.",
		parse: func(s *Settings, v string) error { s.Record, s.Profile = v == "record", v == "profile"; return nil }},
	{Key: "PROFILE_INTERVAL", Default: "off", Kind: Period,
		Help: "How often the profile of a running job is rewritten (10s to 24h), in addition to the one at its end. " +
			"Only with MODE=profile; the process of rank 0 does it.",
		parse: func(s *Settings, v string) (err error) { s.ProfileInterval, err = parseInterval(v); return err }},
	{Key: "START", Default: "on", Kind: Choice, Choices: []string{"on", "paused"}, Alone: true,
		Help:  "`paused`: record nothing until `nccl-otf2 ctl start`.",
		parse: func(s *Settings, v string) error { s.Paused = v == "paused"; return nil }},
	{Key: "WINDOW", Kind: Ordinal, Alone: true,
		Help:  "Which operations to record, by their ordinals on each communicator, from 0: `ops:1000-2000` are 1000 … 1999; `ops:1000-` and `ops:-2000` are open on one side. Collectives are counted as they are called, those of replayed graphs separately; messages go with the next collective.",
		parse: func(s *Settings, v string) (err error) { s.Window, err = parseWindow(v); return err }},
	{Key: "CHANNELS", Default: "off", Kind: Switch,
		Help:  "A row in the timeline for each channel of each communicator rank, beside that of the rank.",
		parse: func(s *Settings, v string) (err error) { s.Channels, err = parseSwitch(v); return err }},
	{Key: "RAW", Default: "off", Kind: Switch,
		Help:  "Rows with each event of EVENTS as NCCL reports it: a region of its own, from its start to its stop, with what its descriptor holds, and its states as points. For a look inside NCCL, with EVENTS `all`; archives become several times as large.",
		parse: func(s *Settings, v string) (err error) { s.Raw, err = parseSwitch(v); return err }},
	{Key: "CUPTI", Default: "off", Kind: Kinds, Alone: true,
		Help:  "Kernels on the GPU, recorded with CUPTI and linked with the operations that launched them. `on`: kernels; `memcpy`, `memset`, `sync`, `memory`, or a list of them: also copies, memory sets, synchronizations, allocations; `all`: all of these. No other profiler can then use CUPTI in the same process. Links need KernelLaunch among EVENTS, which all presets include.",
		parse: func(s *Settings, v string) (err error) { s.CUPTI, err = parseActivities(v); return err }},
	{Key: "METRICS", Default: "on", Kind: Switch,
		Help: "Metrics derived from what NCCL reports: bandwidths of operations and the number of outstanding ones, " +
			"on the rows of ranks; bytes in flight, on those of the network.",
		parse: func(s *Settings, v string) (err error) { s.Metrics, err = parseSwitch(v); return err }},
	{Key: "NVML", Default: "off", Kind: Periods,
		Help:  "Sensors of the GPUs that communicators use (power, clocks, utilization, temperature, memory, NVLink and PCIe traffic) as metrics: `on`, or with the time between readings, as in `on:50ms` (10ms to 1m; default 100ms). Not available for AMD GPUs.",
		parse: func(s *Settings, v string) (err error) { s.NVML, err = parsePeriod(v); return err }},
	{Key: "TIME_SERVICE", Default: "auto", Kind: Choice, Choices: []string{"auto", "off"},
		Help:  "Whether the collector asks this machine's time service (chronyd, once a second, on 127.0.0.1) how far its clock is off, so that the clocks of hosts can be compared. `auto`: if one answers.",
		parse: func(s *Settings, v string) error { s.TimeService = v == "auto"; return nil }},
	{Key: "RANKS", Kind: Numbers,
		Help:  "World ranks to record, such as `0,8-15`. Default: all. If no launcher states the ranks of processes, all are recorded.",
		parse: func(s *Settings, v string) (err error) { s.Ranks, err = parseNumbers(v); return err }},
	{Key: "UNIFY", Default: "auto", Kind: Choice, Choices: []string{"auto", "off"},
		Help:  "Whether the last collector of the job makes the archive. `off` leaves it to `nccl-otf2 unify`.",
		parse: func(s *Settings, v string) error { s.Unify = v == "auto"; return nil }},
	{Key: "TABLES", Default: "off", Kind: Switch,
		Help:  "`on`: whoever makes the archive at the job's end also writes its Parquet tables (docs/tables.md), into the folder `parquet` beside it. Only with MODE=trace.",
		parse: func(s *Settings, v string) (err error) { s.Tables, err = parseSwitch(v); return err }},
	{Key: "PROMETHEUS", Kind: Path,
		Help:  "Folder of the node exporter's textfile collector (`--collector.textfile.directory`). The process of rank 0 keeps a file of metrics of the running job in it, written anew every 15 s and removed after the job's end (docs/export.md). Not with MODE=record.",
		parse: func(s *Settings, v string) error { s.Prometheus = v; return nil }},
	{Key: "DISK", Kind: Size,
		Help: "Maximum size of the event files of each process. Beyond it, nothing new is recorded (what is in " +
			"memory is still written), and what NCCL reports is only counted. Default, and 0: no limit.",
		parse: func(s *Settings, v string) (err error) { s.Disk, err = parseSize(v); return err }},
	{Key: "CPUS", Kind: Numbers,
		Help:  "CPUs for the collector, such as `62,63`. Default: those of the job process.",
		parse: func(s *Settings, v string) (err error) { s.CPUs, err = parseNumbers(v); return err }},
	{Key: "BACKLOG", Default: "auto", Kind: Choice, Choices: []string{"auto", "on", "off"},
		Help:  "`on`: the collector puts off what need not be done while the job runs. It appends records to a file in the shard, which costs a fraction of a processor's time, and turns them into events when none have come for a second, when somebody looks at the job (`top`, `report --hang`, `unify`, `ctl`), after ten minutes, when the file has 256 MiB, and when the process has ended. `auto`: only where processors are scarce. `off`: records are decoded as they come. No effect with MODE=`profile` and `record`, and with DISK.",
		parse: func(s *Settings, v string) error { s.Backlog = v; return nil }},
	{Key: "DEBUG", Default: "off", Kind: Switch, Alone: true,
		Help:  "The collector prints what it does to standard error.",
		parse: func(s *Settings, v string) (err error) { s.Debug, err = parseSwitch(v); return err }},
	{Key: "ENABLE", Default: "on", Kind: Switch, Early: true,
		Help:  "`off` makes the plugin do nothing.",
		parse: func(s *Settings, v string) (err error) { s.Enable, err = parseSwitch(v); return err }},
	{Key: "MEMORY", Default: "256MiB", Kind: Size, Early: true, Least: memoryLeast,
		Help: "Maximum memory for event records per process, at least 4 MiB. Beyond it, events are dropped and " +
			"counted; NCCL never waits.",
		parse: func(s *Settings, v string) (err error) { s.Memory, err = parseMemory(v); return err }},
	{Key: "RING", Default: "memfd", Kind: Choice, Choices: []string{"memfd", "shm"}, Early: true,
		Help:  "Where records wait for the collector. `memfd`: memory that ends with job and collector. `shm`: a file in /dev/shm, from which `unify` recovers what is left when both were killed. All recordings together use at most a quarter of the free space there; if that is not enough, the plugin uses a memfd.",
		parse: func(s *Settings, v string) error { s.Ring = v; return nil }},
	{Key: "CLOCK", Default: "auto", Kind: Choice, Choices: []string{"auto", "tsc", "monotonic", "host"}, Early: true,
		Help:  "Clock of the records. `auto`: the processor's counter if the kernel trusts it, else CLOCK_MONOTONIC. `host` is for tests: the program's own.",
		parse: func(s *Settings, v string) error { s.Clock = v; return nil }},
	{Key: "COLLECTOR", Kind: Path, Early: true,
		Help:  "Program to start as collector. Default: that of the plugin's installation. `spool`: none; a thread of the plugin writes raw files, which `unify` converts.",
		parse: func(s *Settings, v string) error { s.Collector = v; return nil }},
	{Key: "START_LIMIT", Default: "2", Kind: Seconds, Early: true, Least: leastLimit, Most: mostLimit,
		Help: "How long the first communicator's initialization waits for the collector to be ready (1 to 600); " +
			"after that nothing is recorded. Raise it where nodes are overloaded or programs are on a slow file " +
			"system.",
		parse: func(s *Settings, v string) (err error) { s.StartLimit, err = parseSeconds(v); return err }},
	{Key: "SCOREP", Default: "auto", Kind: Choice, Choices: []string{"auto", "on", "off"}, Early: true,
		Help:  "Whether calls of NCCL become regions of a Score-P measurement in the process. `auto`: if there is one that can take them; `on`: also report it if there is none. See docs/scorep.md.",
		parse: func(s *Settings, v string) error { s.Scorep = v; return nil }},
	{Key: "CUPTI_LIBRARY", Kind: Path, Early: true,
		Help: "The libcupti.so to use. If the program has loaded one, that is always used. Default: the one beside " +
			"NCCL in Python's packages, otherwise the one that the loader finds, otherwise the one under CUDA_HOME.",
		parse: func(s *Settings, v string) error { s.CUPTILibrary = v; return nil }},
	{Key: "CONFIG", Kind: Path,
		Help:  "Settings file, `.yaml`, `.toml` or `.json`, with these keys in lower or upper case. Only from the environment.",
		parse: func(s *Settings, v string) error { s.Config = v; return nil }},
}

// lookupSetting finds a row by its key, ignoring case.
func lookupSetting(key string) *Setting {
	for i := range Table {
		if sameWord(Table[i].Key, key) {
			return &Table[i]
		}
	}
	return nil
}
