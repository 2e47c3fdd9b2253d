// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/cmd/nccl-otf2/internal/doctor"
	"github.com/nccl-otf2/nccl-otf2/config"
	"github.com/nccl-otf2/nccl-otf2/plugin/shm"
)

// jobSettings reads the settings of a job with this environment, and adds to the environment those that the plugin
// reads only from there.
func jobSettings(env *environment) (*config.Settings, error) {
	if err := config.MistypedError(env.names()); err != nil {
		return nil, err
	}
	s, err := config.Load(env.lookup)
	if err != nil {
		return nil, err
	}
	for _, v := range s.Environment() {
		name, value, _ := strings.Cut(v, "=")
		env.set(name, value)
	}
	return s, nil
}

// settingsFault returns an error of jobSettings; an invalid value of --events is a usage error.
func settingsFault(err error, events string) error {
	if cause := errors.Unwrap(err); events != "" && cause != nil &&
		strings.HasPrefix(err.Error(), config.Prefix+"EVENTS:") {
		return usagef("--events: %w", cause)
	}
	return err
}

// startedPerRank reports whether a launcher started this process as one of several of a job, which share the experiment
// directory.
func startedPerRank(env *environment) bool {
	l := config.FindLauncher(env.lookup)
	return l.Rank >= 0 && l.Size != 1
}

// settingsForDoctor returns the settings of a job that is started here.
func settingsForDoctor() (doctor.Settings, error) {
	env := newEnvironment(os.Environ())
	s, err := config.Load(env.lookup)
	if err != nil {
		return doctor.Settings{}, err
	}
	dir := s.Directory(env.lookup, 0)
	if s.Dir == "" && config.StepID(env.lookup) == "" {
		dir = "nccl-otf2-<id>" // named after the first communicator, or by `run`
	}
	source := "no settings file"
	if s.Config != "" {
		source = "settings file " + s.Config
	}
	out := doctor.Settings{
		Summary:   fmt.Sprintf("events %s, memory %d MiB per process, %s", s.EventsText(), s.Memory>>20, source),
		Directory: dir, Memory: s.Memory, Shared: s.Ring == "shm", NVML: s.NVML > 0, Collector: s.Collector,
		Network: s.Events&(1<<shm.EventNetPlugin) != 0,
	}
	if s.Record {
		out.Summary = fmt.Sprintf("callbacks for replay, memory %d MiB per process, %s", s.Memory>>20, source)
	}
	if s.Profile {
		out.Summary = fmt.Sprintf("profile of events %s, memory %d MiB per process, %s", s.EventsText(), s.Memory>>20,
			source)
	}
	if s.Paused {
		out.Warnings = append(
			out.Warnings, config.Prefix+"START=paused: nothing is recorded until `nccl-otf2 ctl start`")
	}
	if s.Collector == "spool" && (s.Record || s.Profile || s.Paused || s.Window != nil || s.Disk != 0) {
		out.Warnings = append(
			out.Warnings, "without a collector (NCCL_OTF2_COLLECTOR=spool) MODE, START, WINDOW and DISK have no effect")
	}
	if !s.Enable {
		out.Warnings = append(out.Warnings, config.Prefix+"ENABLE switches the plugin off: nothing is recorded")
	}
	for _, name := range env.names() {
		known := slices.ContainsFunc(config.Table, func(row config.Setting) bool { return row.Env() == name })
		if strings.HasPrefix(name, config.Prefix) && !known {
			out.Warnings = append(out.Warnings, name+" is not a setting")
		}
	}
	return out, nil
}
