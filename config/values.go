// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// events are the event types of NCCL's profiler API in the order of their bits.
var events = api.Names[:]

// word is a word in the value of a setting, and its meaning.
type word struct {
	name  string
	value uint64
}

// findWord returns the meaning of a word, ignoring case.
func findWord(all []word, name string) (value uint64, found bool) {
	i := slices.IndexFunc(all, func(w word) bool { return sameWord(w.name, name) })
	if i < 0 {
		return 0, false
	}
	return all[i].value, true
}

func wordNames(all []word) (names []string) {
	for _, w := range all {
		names = append(names, w.name)
	}
	return names
}

// presets are named sets of events; each contains the events of the ones before it. net-sums also contains
// api.NetSumsBit.
var presets = func() (all []word) {
	for _, name := range api.Presets {
		all = append(all, word{name, uint64(api.Preset(name))})
		if name == "net" {
			all = append(all, word{api.NetSums, uint64(api.Preset(name) | api.NetSumsBit)})
		}
	}
	return all
}()

// eventWords are the presets, and the names of events.
var eventWords = func() []word {
	all := slices.Clone(presets)
	for i, e := range events {
		all = append(all, word{e, 1 << i})
	}
	return all
}()

// ParseEvents parses a list of presets and event names, as in the setting EVENTS.
func ParseEvents(text string) (mask uint32, err error) {
	mask, err = parseEvents(text)
	switch {
	case err == nil && mask == 0:
		err = fmt.Errorf("%q selects no event", text)
	case mask&api.NetSumsBit != 0:
		return 0, fmt.Errorf(
			"%s says how the network's steps are written, which is settled when the job begins; the events "+
				"themselves are those of net", api.NetSums)
	}
	return mask, err
}

// parseEventsSetting parses the setting EVENTS.
func parseEventsSetting(s *Settings, text string) error {
	mask, err := parseEvents(text)
	s.Events, s.NetSums = mask&^api.NetSumsBit, mask&api.NetSumsBit != 0
	return err
}

// EventsText returns the selected events in the syntax of EVENTS.
func (s *Settings) EventsText() string { return EventList(s.chosenEvents()) }

// chosenEvents returns the mask of the selected events, with api.NetSumsBit if steps of the network are summed.
func (s *Settings) chosenEvents() uint32 {
	if s.NetSums {
		return s.Events | api.NetSumsBit
	}
	return s.Events
}

// parseEvents parses presets and event names, ignoring case, separated by commas or blanks.
func parseEvents(text string) (mask uint32, err error) {
	for _, name := range splitWords(text) {
		bits, ok := findWord(eventWords, name)
		if !ok {
			return 0, fmt.Errorf("%q is neither a preset nor an event; use one of %s", name,
				strings.Join(wordNames(eventWords), ", "))
		}
		mask |= uint32(bits)
	}
	return mask, nil
}

// EventList returns a mask in the syntax of EVENTS: the name of a preset, else names of events, followed by net-sums
// for api.NetSumsBit. It ignores other bits.
func EventList(mask uint32) string {
	for _, p := range presets {
		if p.value == uint64(mask) {
			return p.name
		}
	}
	if mask&api.NetSumsBit != 0 {
		return EventList(mask&^api.NetSumsBit) + "," + api.NetSums
	}
	var names []string
	for i, e := range events {
		if mask&(1<<i) != 0 {
			names = append(names, e)
		}
	}
	return strings.Join(names, ",")
}

func parseMask(text string) (uint32, error) {
	text = lowerASCII(trimBlanks(text))
	digits, base := text, 10
	if rest, ok := strings.CutPrefix(text, "0x"); ok {
		digits, base = rest, 16
	}
	mask, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return 0, fmt.Errorf("not a decimal or 0x number of 32 bits")
	}
	return uint32(mask) & (1<<len(events) - 1), nil
}

// Kinds of CUPTI's activities, numbers of its header cupti_activity.h.
const (
	cuptiMemcpy   = 1 << 1
	cuptiMemset   = 1 << 2
	cuptiDriver   = 1 << 4
	cuptiKernel   = 1 << 10 // CONCURRENT_KERNEL
	cuptiMemcpy2  = 1 << 22
	cuptiSync     = 1 << 38
	cuptiExternal = 1 << 39
	cuptiMemory   = 1 << 49 // MEMORY2

	// cuptiKernels are kernels and what links them with their launches: a launch is joined to its kernels through its
	// driver record. The runtime's records are not asked for: the calls that KernelLaunch events lie around (NCCL 2.28
	// and later) are driver calls, a runtime call that launches a graph ends in a driver call under the same
	// correlation id, and before CUPTI of CUDA 12.5 records of all runtime calls would have to be taken for it.
	cuptiKernels = cuptiKernel | cuptiDriver | cuptiExternal
)

// activityWords are the activities that CUPTI can record in addition to kernels.
var activityWords = []word{
	{"memcpy", cuptiKernels | cuptiMemcpy | cuptiMemcpy2},
	{"memset", cuptiKernels | cuptiMemset},
	{"sync", cuptiKernels | cuptiSync},
	{"memory", cuptiKernels | cuptiMemory},
}

// allActivitiesWord selects all of them.
const allActivitiesWord = "all"

// parseActivities parses the setting CUPTI: off, on, all, or names of activities in addition to kernels.
func parseActivities(text string) (kinds uint64, err error) {
	if on, err := parseSwitch(text); err == nil {
		if on {
			kinds = cuptiKernels
		}
		return kinds, nil
	}
	if sameWord(trimBlanks(text), allActivitiesWord) {
		for _, a := range activityWords {
			kinds |= a.value
		}
		return kinds, nil
	}
	for _, name := range splitWords(text) {
		more, ok := findWord(activityWords, name)
		if !ok {
			return 0, fmt.Errorf("%q %s", name, Kinds.problemText())
		}
		kinds |= more
	}
	return kinds, nil
}

// switches are the words of a switch: 1 is on.
var switches = []word{{"1", 1}, {"on", 1}, {"true", 1}, {"yes", 1}, {"0", 0}, {"off", 0}, {"false", 0}, {"no", 0}}

func parseSwitch(text string) (bool, error) {
	on, ok := findWord(switches, trimBlanks(text))
	if !ok {
		return false, fmt.Errorf("%q %s", text, Switch.problemText())
	}
	return on == 1, nil
}

// memoryLeast is the minimum with which the plugin works.
const memoryLeast = 4 << 20

func parseMemory(text string) (uint64, error) {
	size, err := parseSize(text)
	if err == nil && size < memoryLeast {
		err = fmt.Errorf("%q is less than 4 MiB", text)
	}
	return size, err
}

// units are the units of sizes, as powers of 2.
var units = []word{{"", 0}, {"B", 0}, {"K", 10}, {"KB", 10}, {"Ki", 10}, {"KiB", 10}, {"M", 20}, {"MB", 20}, {"Mi", 20},
	{"MiB", 20}, {"G", 30}, {"GB", 30}, {"Gi", 30}, {"GiB", 30}}

// parseSize parses a number of bytes with an optional unit, which blanks may precede.
func parseSize(text string) (uint64, error) {
	digits := trimBlanks(text)
	unit := strings.TrimLeft(digits, "0123456789")
	number, err := strconv.ParseUint(strings.TrimSuffix(digits, unit), 10, 63)
	shift, ok := findWord(units, trimBlanks(unit))
	if err != nil || !ok || bits.Len64(number)+int(shift) > 63 {
		return 0, fmt.Errorf("%q %s", text, Size.problemText())
	}
	return number << shift, nil
}

// Window selects the operations to record, by their ordinals on each communicator: First ≤ ordinal < Last.
type Window struct{ First, Last uint64 }

// everything is the window that contains all operations.
var everything = Window{0, math.MaxUint64}

// windowUnit is the prefix of a window's text: windows count operations.
const windowUnit = "ops:"

// parseWindow reads "ops:1000-2000", "ops:1000-" and "ops:-2000".
func parseWindow(text string) (*Window, error) {
	wrong := fmt.Errorf("%q %s", text, Ordinal.problemText())
	numbers, ok := strings.CutPrefix(lowerASCII(trimBlanks(text)), windowUnit)
	first, last, isRange := strings.Cut(numbers, "-")
	if !ok || !isRange || first == "" && last == "" {
		return nil, wrong
	}
	w := everything
	var err error
	if first != "" {
		if w.First, err = strconv.ParseUint(first, 10, 63); err != nil {
			return nil, wrong
		}
	}
	if last != "" {
		if w.Last, err = strconv.ParseUint(last, 10, 63); err != nil {
			return nil, wrong
		}
	}
	if w.First >= w.Last {
		return nil,
			fmt.Errorf("%q contains no operation: the first number must be less than the last, which is not included",
				text)
	}
	return &w, nil
}

// Time between readings of sensors. NVML's own values are of periods of 20 ms (PCIe) to 1 s (power, utilization), and
// reading takes some 10 µs to 1 ms each, so there is nothing to gain below the least.
const (
	usualPeriod = 100 * time.Millisecond
	leastPeriod = 10 * time.Millisecond
	mostPeriod  = time.Minute
)

// parsePeriod reads "off", "on" and "on:50ms"; off is 0.
func parsePeriod(text string) (time.Duration, error) {
	state, period, given := strings.Cut(trimBlanks(text), ":")
	on, err := parseSwitch(state)
	switch {
	case err != nil || given && !on:
		return 0, fmt.Errorf("%q is unknown; use off, on, or on with a period such as on:50ms", text)
	case !on:
		return 0, nil
	case !given:
		return usualPeriod, nil
	}
	d, err := time.ParseDuration(period)
	if err != nil || d < leastPeriod || d > mostPeriod {
		return 0, fmt.Errorf("%q is not a period from %v to %v, such as 50ms", period, leastPeriod, mostPeriod)
	}
	return d, nil
}

// Time between profiles of a running job.
const (
	leastInterval = 10 * time.Second
	mostInterval  = 24 * time.Hour
)

// parseInterval reads "off" and "10m"; off is 0.
func parseInterval(text string) (time.Duration, error) {
	if on, err := parseSwitch(text); err == nil && !on {
		return 0, nil
	}
	d, err := time.ParseDuration(trimBlanks(text))
	if err != nil || d < leastInterval || d > mostInterval {
		return 0, fmt.Errorf("%q is neither off nor a period from %v to %v, such as 10m", text, leastInterval,
			mostInterval)
	}
	return d, nil
}

// NumberSet is a set of numbers as ascending ranges. The empty set means that the setting is not set.
type NumberSet []NumberRange

// NumberRange contains all numbers from First to Last.
type NumberRange struct{ First, Last int }

// Has reports whether n is in the set.
func (s NumberSet) Has(n int) bool {
	return slices.ContainsFunc(s, func(r NumberRange) bool { return r.First <= n && n <= r.Last })
}

// parseNumbers reads "0,4-7": numbers and ranges separated by commas or blanks.
func parseNumbers(text string) (NumberSet, error) {
	var set NumberSet
	for _, part := range splitWords(text) {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, err := strconv.ParseUint(first, 10, 31)
		b, err2 := strconv.ParseUint(last, 10, 31)
		if err != nil || err2 != nil || b < a {
			return nil, fmt.Errorf("%q is not a number or a range such as 4-7", part)
		}
		set = append(set, NumberRange{int(a), int(b)})
	}
	if len(set) == 0 {
		return nil, fmt.Errorf("%q has no number", text)
	}
	slices.SortFunc(set, func(a, b NumberRange) int { return a.First - b.First })
	return set, nil
}

// Seconds that the plugin waits for its collector.
const (
	leastLimit = 1
	mostLimit  = 600
)

// parseSeconds reads a whole number of seconds.
func parseSeconds(text string) (int, error) {
	n, err := strconv.ParseUint(trimBlanks(text), 10, 63)
	if err != nil || n < leastLimit || n > mostLimit {
		return 0, fmt.Errorf("%q %s from %d to %d", text, Seconds.problemText(), leastLimit, mostLimit)
	}
	return int(n), nil
}
