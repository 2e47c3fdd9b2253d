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
)

// events are the event types of NCCL's profiler API in the order of their bits. (Package plugin/shm
// has the same names; neither imports the other. A test in package collector compares them.)
var events = []string{
	"Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
	"GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl", "CeSync", "CeBatch", "KernelPhase",
}

// EventNames returns the names of the event types in the order of their bits.
func EventNames() []string { return slices.Clone(events) }

// presets are named selections of events; each holds the ones before it.
var presets = []struct {
	name string
	mask uint32
}{
	{"light", maskOf("GroupApi", "CollApi", "P2pApi", "KernelLaunch", "Group", "Coll", "P2p")},
	{"gpu", maskOf("light", "KernelCh")},
	{"net", maskOf("gpu", "ProxyOp", "ProxyStep")},
	{"all", maskOf("net", "ProxyCtrl", "NetPlugin", "CeColl", "CeSync", "CeBatch", "KernelPhase")},
}

func maskOf(names ...string) (mask uint32) {
	for _, n := range names {
		switch n {
		case "light":
			mask |= maskOf("GroupApi", "CollApi", "P2pApi", "KernelLaunch", "Group", "Coll", "P2p")
		case "gpu":
			mask |= maskOf("light", "KernelCh")
		case "net":
			mask |= maskOf("gpu", "ProxyOp", "ProxyStep")
		default:
			mask |= 1 << slices.Index(events, n)
		}
	}
	return mask
}

// ParseEvents reads a list as the setting EVENTS takes it: presets and event names.
func ParseEvents(text string) (mask uint32, err error) {
	if mask, err = parseEvents(text); err == nil && mask == 0 {
		err = fmt.Errorf("%q names no event", text)
	}
	return mask, err
}

// parseEvents reads presets and event names, in any case, separated by commas or blanks.
func parseEvents(text string) (mask uint32, err error) {
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		m, ok := eventMask(name)
		if !ok {
			var known []string
			for _, p := range presets {
				known = append(known, p.name)
			}
			return 0, fmt.Errorf("no event or preset is called %q; there are %s", name, strings.Join(append(known, events...), ", "))
		}
		mask |= m
	}
	return mask, nil
}

func eventMask(name string) (uint32, bool) {
	for _, p := range presets {
		if strings.EqualFold(p.name, name) {
			return p.mask, true
		}
	}
	for i, e := range events {
		if strings.EqualFold(e, name) {
			return 1 << i, true
		}
	}
	return 0, false
}

// EventList writes a mask as EVENTS would have it: a preset's name if it is one, else names of events.
// Bits that are no event are left out.
func EventList(mask uint32) string {
	for _, p := range presets {
		if p.mask == mask {
			return p.name
		}
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
	digits, base := text, 10
	if rest, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
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

	// cuptiKernels are kernels and what links them with their launches. (The plugin has the same table, for where
	// there is no collector.)
	cuptiKernels = cuptiKernel | cuptiDriver | cuptiExternal
)

var activities = []struct {
	name  string
	kinds uint64
}{
	{"memcpy", cuptiMemcpy | cuptiMemcpy2},
	{"memset", cuptiMemset},
	{"sync", cuptiSync},
	{"memory", cuptiMemory},
}

// parseActivities reads what of CUPTI is to be recorded: off, on, all, or names of activities beside kernels.
func parseActivities(text string) (kinds uint64, err error) {
	if on, err := parseSwitch(text); err == nil {
		if on {
			kinds = cuptiKernels
		}
		return kinds, nil
	}
	all := strings.EqualFold(strings.TrimSpace(text), "all")
	for _, a := range activities {
		if all {
			kinds |= cuptiKernels | a.kinds
		}
	}
	if all {
		return kinds, nil
	}
next:
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		for _, a := range activities {
			if strings.EqualFold(a.name, name) {
				kinds |= cuptiKernels | a.kinds
				continue next
			}
		}
		return 0, fmt.Errorf("%q is none of off, on, all, memcpy, memset, sync, memory", name)
	}
	return kinds, nil
}

func parseSwitch(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "1", "on", "true", "yes":
		return true, nil
	case "0", "off", "false", "no":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off", text)
}

// memoryLeast is the least that the plugin works with.
const memoryLeast = 4 << 20

func parseMemory(text string) (uint64, error) {
	size, err := parseSize(text)
	if err == nil && size < memoryLeast {
		err = fmt.Errorf("%q is less than 4 MiB", text)
	}
	return size, err
}

// parseSize reads a number of bytes with an optional suffix K, M or G, which may be followed by B or
// iB; all are powers of 1024.
func parseSize(text string) (uint64, error) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(text)
	}
	number, err := strconv.ParseUint(text[:end], 10, 63)
	unit := strings.ToUpper(strings.TrimSpace(text[end:]))
	unit = strings.TrimSuffix(unit, "B")
	shift, ok := map[string]int{"": 0, "K": 10, "KI": 10, "M": 20, "MI": 20, "G": 30, "GI": 30}[unit]
	if err != nil || !ok || bits.Len64(number)+shift > 63 {
		return 0, fmt.Errorf("%q is not a size such as 256M or 1GiB", text)
	}
	return number << shift, nil
}

// Window are the operations that are recorded, by their ordinals on each communicator: First ≤ ordinal < Last.
type Window struct{ First, Last uint64 }

// Everything is the window that all operations are inside.
var Everything = Window{0, math.MaxUint64}

// windowUnit begins the text of a window: it is counted in operations.
const windowUnit = "ops:"

// parseWindow reads "ops:1000-2000", "ops:1000-" and "ops:-2000".
func parseWindow(text string) (*Window, error) {
	wrong := fmt.Errorf("%q is not a window such as ops:1000-2000, ops:1000- or ops:-2000", text)
	numbers, ok := strings.CutPrefix(strings.ToLower(text), windowUnit)
	first, last, isRange := strings.Cut(numbers, "-")
	if !ok || !isRange || first == "" && last == "" {
		return nil, wrong
	}
	w := Everything
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
		return nil, fmt.Errorf("no operation is in %q: the first number must be less than the last, which is outside", text)
	}
	return &w, nil
}

// Time between readings of sensors. NVML's own values are of periods of 20 ms (PCIe) to 1 s (power, utilisation), and
// reading takes some 10 µs to 1 ms each, so there is nothing to gain below the least.
const (
	usualPeriod = 100 * time.Millisecond
	leastPeriod = 10 * time.Millisecond
	mostPeriod  = time.Minute
)

// parsePeriod reads "off", "on" and "on:50ms"; off is 0.
func parsePeriod(text string) (time.Duration, error) {
	state, period, given := strings.Cut(text, ":")
	on, err := parseSwitch(state)
	switch {
	case err != nil || given && !on:
		return 0, fmt.Errorf("%q is none of off, on, and on with a period such as on:50ms", text)
	case !on:
		return 0, nil
	case !given:
		return usualPeriod, nil
	}
	d, err := time.ParseDuration(period)
	if err != nil || d < leastPeriod || d > mostPeriod {
		return 0, fmt.Errorf("%q is no period from %v to %v, such as 50ms", period, leastPeriod, mostPeriod)
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
	d, err := time.ParseDuration(text)
	if err != nil || d < leastInterval || d > mostInterval {
		return 0, fmt.Errorf("%q is neither off nor a period from %v to %v, such as 10m", text, leastInterval, mostInterval)
	}
	return d, nil
}

// NumberSet is a set of numbers as ranges, ascending. The empty set stands for "not set".
type NumberSet []NumberRange

// NumberRange has all numbers from First to Last.
type NumberRange struct{ First, Last int }

// Has tells whether n is in the set.
func (s NumberSet) Has(n int) bool {
	return slices.ContainsFunc(s, func(r NumberRange) bool { return r.First <= n && n <= r.Last })
}

// parseNumbers reads "0,4-7": numbers and ranges separated by commas or blanks.
func parseNumbers(text string) (NumberSet, error) {
	var set NumberSet
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
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

// parseSeconds reads a whole number of seconds.
func parseSeconds(text string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > 600 {
		return 0, fmt.Errorf("%q is no number of seconds from 1 to 600", text)
	}
	return n, nil
}
