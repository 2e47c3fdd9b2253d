// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/viper"
)

// Lookup returns the value of an environment variable, and whether it is set: os.LookupEnv, or a function for another
// environment.
type Lookup func(name string) (value string, set bool)

// lookupValue treats a variable that contains only blanks as unset, as the plugin does.
func (l Lookup) lookupValue(name string) string {
	v, _ := l(name)
	if trimBlanks(v) == "" {
		return ""
	}
	return v
}

// MaskVariable is the variable that NVIDIA's example profiler and its derivatives read. NCCL itself does not read it.
const MaskVariable = "NCCL_PROFILE_EVENT_MASK"

// Settings are the values in force.
type Settings struct {
	Dir             string // experiment directory; "" leaves it to Directory
	Events          uint32 // bit mask of event types, as NCCL's activation mask
	NetSums         bool   // steps of the network are summed
	Profile         bool   // events are summed; no timeline
	Record          bool   // callbacks are recorded for replay; no timeline
	Paused          bool   // nothing is recorded until the user resumes it
	Window          *Window
	Channels        bool
	Raw             bool
	CUPTI           uint64 // bit set of CUPTI's activity kinds; 0: CUPTI is not used
	Ranks           NumberSet
	Unify           bool
	Tables          bool   // Parquet tables are written when the archive is made at the job's end
	Disk            uint64 // bytes of event files, 0: no limit
	CPUs            NumberSet
	Backlog         string // when conversion is deferred while the job runs: "auto", "on" or "off"
	Debug           bool
	Enable          bool
	Memory          uint64 // bytes
	Ring            string
	Clock           string
	Collector       string        // path or "spool"; "" for the one beside the plugin
	StartLimit      int           // seconds that the plugin waits for the collector
	Scorep          string        // "auto", "on" or "off"
	CUPTILibrary    string        // path; "": the plugin searches
	Config          string        // path of the settings file, "" if there is none
	Prometheus      string        // folder for metrics of the running job; "": none
	ProfileInterval time.Duration // between profiles of a running job; 0: only at its end
	Metrics         bool          // computed from NCCL's events
	NVML            time.Duration // between readings of the GPUs' sensors; 0: they are not read
	TimeService     bool          // asked for the offset of the machine's clock, if there is one

	texts    map[string]string // by key: the text of settings that are set or have a default
	fromFile map[string]bool   // by key: whether the settings file sets it
}

// Load reads the settings. Errors are one line each and name the variable, or the file and the key.
func Load(lookup Lookup) (*Settings, error) {
	s := &Settings{texts: make(map[string]string), fromFile: make(map[string]bool)}
	v := viper.New()
	path := lookup.lookupValue(Prefix + "CONFIG")
	if path != "" {
		if err := readFile(v, path); err != nil {
			return nil, err
		}
	}
	for i := range Table {
		row := &Table[i]
		place := row.Env()
		v.SetDefault(row.Key, row.Default)
		if text := lookup.lookupValue(row.Env()); text != "" {
			// BindEnv would read the environment of this process, not that of the job, and take blanks for a value.
			v.Set(row.Key, text)
		} else if s.fromFile[row.Key] = v.InConfig(row.Key); s.fromFile[row.Key] {
			place = path + ": " + strings.ToLower(row.Key)
		}
		value, err := plainText(v.Get(row.Key))
		if row.Kind != Path {
			value = trimBlanks(value)
		}
		if err == nil && value == "" {
			continue
		}
		if err == nil {
			err = row.checkValue(s, value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		s.texts[row.Key] = value
	}
	if s.Paused && s.Window != nil {
		return nil, fmt.Errorf("%sSTART=paused and %sWINDOW exclude each other", Prefix, Prefix)
	}
	text := lookup.lookupValue(MaskVariable)
	if text != "" && lookup.lookupValue(Prefix+"EVENTS") == "" && !s.fromFile["EVENTS"] {
		mask, err := parseMask(text)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", MaskVariable, text, err)
		}
		s.Events, s.texts["EVENTS"] = mask, EventList(mask)
	}
	return s, nil
}

func (row *Setting) checkValue(s *Settings, value string) error {
	if row.Kind == Choice {
		i := slices.IndexFunc(row.Choices, func(c string) bool { return sameWord(c, trimBlanks(value)) })
		if i < 0 {
			return fmt.Errorf("%q %s", value, UnknownText(row.Choices))
		}
		value = row.Choices[i]
	}
	return row.parse(s, value)
}

// suggestKey returns the setting that an unknown key resembles, else all settings.
func suggestKey(key string) string {
	var all []string
	for _, row := range Table {
		if row.Key != "CONFIG" {
			all = append(all, strings.ToLower(row.Key))
		}
	}
	if near := NearestName(strings.TrimPrefix(strings.ToLower(key), strings.ToLower(Prefix)), all); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return "; there are " + strings.Join(all, ", ")
}

// MistypedError returns an error for a variable whose name resembles that of a setting: it would have no effect.
func MistypedError(variables []string) error {
	var all []string
	for _, row := range Table {
		all = append(all, row.Key)
	}
	for _, name := range variables {
		key, ours := strings.CutPrefix(name, Prefix)
		if !ours || slices.Contains(all, key) {
			continue
		}
		if near := NearestName(key, all); near != "" {
			return fmt.Errorf("unknown setting %s, did you mean %s%s?", name, Prefix, near)
		}
	}
	return nil
}

// NearestName returns the name that a mistyped one probably stands for, "" if there is none: at most one letter in
// three is wrong, missing, additional, or swapped with its neighbor.
func NearestName(name string, names []string) (near string) {
	least := max(1, len(name)/3) + 1
	for _, n := range names {
		if d := editDistance(name, n); d < least {
			near, least = n, d
		}
	}
	return near
}

// editDistance counts the letters to change, insert or delete, and the neighbors to swap.
func editDistance(a, b string) int {
	before, row := []int(nil), make([]int, len(b)+1) // of the beginnings of a and all beginnings of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			substitute := row[j]
			if a[i] != b[j] {
				substitute++
			}
			next[j+1] = min(substitute, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// Texts returns the settings in effect as text by key, without unset ones. Archives contain them.
func (s *Settings) Texts() map[string]string {
	texts := make(map[string]string, len(s.texts))
	maps.Copy(texts, s.texts)
	return texts
}

// Environment returns NAME=VALUE for the early settings of the settings file, which the plugin can read only from its
// environment.
func (s *Settings) Environment() []string {
	var vars []string
	for _, row := range Table {
		if row.Early && s.fromFile[row.Key] {
			vars = append(vars, row.Env()+"="+s.texts[row.Key])
		}
	}
	return vars
}

// RecordedSettings parses the settings that a recording contains. It keeps values that are no longer valid as text.
func RecordedSettings(texts map[string]string) *Settings {
	s := &Settings{texts: texts}
	for key, text := range texts {
		if row := lookupSetting(key); row != nil && text != "" {
			_ = row.checkValue(s, text)
		}
	}
	return s
}
