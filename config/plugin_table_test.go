// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/hidden"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// The plugin's table is what this package's tables make it. `make generate` writes it anew.
func TestPluginTable(t *testing.T) {
	golden.Text(t, "../plugin/settings_table.h", pluginTable())
}

// knownToPlugin reports whether the plugin reads a setting.
func knownToPlugin(row *Setting) bool { return row.Early || row.Alone }

// pluginTable is the C header that plugin/settings.c reads settings by.
func pluginTable() string {
	var b strings.Builder
	b.WriteString(`/* SPDX-License-Identifier: Apache-2.0
 *
 * Made by ` + "`make generate`" + ` of the tables in config/, which are to be changed in its place.
 */
#ifndef NCCLOTF2_SETTINGS_TABLE_H
#define NCCLOTF2_SETTINGS_TABLE_H
`)
	var rows, choices []string
	kinds := map[Kind]string{Path: "PATH", Switch: "SWITCH", Size: "SIZE", Choice: "CHOICE", Events: "EVENTS",
		Seconds: "SECONDS", Ordinal: "WINDOW", Kinds: "ACTIVITIES"}
	b.WriteString("\nenum ncclotf2_setting {\n")
	for i := range Table {
		row := &Table[i]
		if !knownToPlugin(row) {
			continue
		}
		fmt.Fprintf(&b, "  NCCLOTF2_SETTING_%s,\n", row.Key)
		wrong, most := row.Kind.problemText(), "UINT64_MAX"
		if row.Kind == Choice {
			wrong = UnknownText(row.Choices)
		}
		if row.Least != 0 || row.Most != 0 {
			wrong += ", or is out of bounds"
		}
		if row.Most != 0 {
			most = fmt.Sprint(row.Most)
		}
		rows = append(rows, fmt.Sprintf("X(%s, %s, %q, %d, %s, %q, %q)", row.Key, kinds[row.Kind], row.Default,
			row.Least, most, strings.Join(row.Choices, " "), wrong))
		if row.Kind == Choice {
			var names []string
			for _, c := range row.Choices {
				names = append(names, "NCCLOTF2_CHOICE_"+row.Key+"_"+strings.ToUpper(c))
			}
			choices = append(choices, "enum { "+strings.Join(names, ", ")+" };\n")
		}
	}
	b.WriteString("  NCCLOTF2_SETTINGS\n};\n\n/* Values of those that are a choice. */\n" + strings.Join(choices, ""))
	list := func(comment, name string, entries []string) {
		fmt.Fprintf(&b, "\n/* %s */\n#define %s(X) \\\n  %s\n", comment, name, strings.Join(entries, " \\\n  "))
	}
	list("Key, kind, default, least, most, choices, what a text is that is not understood.", "NCCLOTF2_SETTING_ROWS",
		rows)
	var entries []string
	for _, w := range switches {
		entries = append(entries, fmt.Sprintf("X(%q, %d)", w.name, w.value))
	}
	list("Words of a switch.", "NCCLOTF2_SWITCH_WORDS", entries)
	entries = nil
	for _, u := range units {
		entries = append(entries, fmt.Sprintf("X(%q, %d)", u.name, u.value))
	}
	list("Units of sizes, as powers of two.", "NCCLOTF2_SIZE_UNITS", entries)
	entries = nil
	for i, p := range presets {
		for k := range i {
			if presets[k].value&^p.value&^api.NetSumsBit != 0 {
				panic("presets do not hold each other")
			}
		}
	}
	for _, w := range eventWords {
		entries = append(entries, fmt.Sprintf("X(%q, %s)", w.name, eventBits(w.value)))
	}
	list("Presets, and names of events.", "NCCLOTF2_EVENT_WORDS", entries)
	entries = []string{fmt.Sprintf("X(%q, %s)", allActivitiesWord, hexadecimal(func() (all uint64) {
		for _, a := range activityWords {
			all |= a.value
		}
		return all
	}()))}
	fmt.Fprintf(&b, "\n/* Kinds of CUPTI's records of kernels alone. */\n#define NCCLOTF2_KERNEL_KINDS %s\n",
		hexadecimal(cuptiKernels))
	for _, a := range activityWords {
		entries = append(entries, fmt.Sprintf("X(%q, %s)", a.name, hexadecimal(a.value)))
	}
	list("What CUPTI can record beside kernels, as bits of its kinds. The first stands alone, the others can be a "+
		"list.", "NCCLOTF2_ACTIVITY_WORDS", entries)
	entries = nil
	for _, s := range jobSteps {
		entries = append(entries, fmt.Sprintf("X(%q, %q, %q)", s.job, s.step, s.attempt))
	}
	list("How systems that start jobs name a job, its step, and the attempt at it.", "NCCLOTF2_JOB_STEPS", entries)
	entries = nil
	for _, id := range noSteps {
		entries = append(entries, fmt.Sprintf("X(%q)", id))
	}
	list("Numbers by which Slurm means no step of srun's.", "NCCLOTF2_NO_STEPS", entries)
	entries = nil
	for _, s := range hidden.Safe {
		entries = append(entries, fmt.Sprintf("X(%d, %q, %v, %v)", s.API, s.Variable, s.Default, s.On))
	}
	list("Settings of NCCL's that make stamps of kernels safe: from which version of the API on, name, default, "+
		"whether it must be on.", "NCCLOTF2_SAFE_STAMPS", entries)
	fmt.Fprintf(&b, "\n/* The first version of the API that needs one of them. */\n#define NCCLOTF2_UNSAFE_STAMPS %d\n",
		hidden.FirstUnsafe)
	fmt.Fprintf(
		&b, "\n/* The last version of the API whose releases read stamps in their proxy's thread; more than a pool "+
			"of its operations takes, bytes; the part of\n * /dev/shm that pools may take; NCCL's setting with which "+
			"they are made with the communicator. */\n"+
			"#define NCCLOTF2_PROXIED_STAMPS %d\n#define NCCLOTF2_PROXY_POOL UINT64_C(%d)\n#define "+
			"NCCLOTF2_POOLS_SHARE %d\n#define NCCLOTF2_RUNTIME_CONNECT %q\n",
		hidden.LastProxied, hidden.PoolBytes, hidden.PoolsShare, hidden.RuntimeConnect)
	fmt.Fprintf(&b, "\n/* The least memory for records, bytes. */\n#define NCCLOTF2_MEMORY_LEAST UINT64_C(%d)\n",
		memoryLeast)
	fmt.Fprintf(
		&b, "\n/* How a window begins, what a job without an id is called, and the variable of other profilers. "+
			"*/\n#define NCCLOTF2_WINDOW_UNIT %q\n#define NCCLOTF2_NO_JOB %q\n#define NCCLOTF2_MASK_VARIABLE "+
			"%q\n\n#endif\n", windowUnit, noJob, MaskVariable)
	return b.String()
}

func hexadecimal(bits uint64) string { return fmt.Sprintf("UINT64_C(0x%x)", bits) }

// eventBits are the bits of event types by the plugin's names of them.
func eventBits(mask uint64) string {
	var terms []string
	for i, e := range events {
		if mask&(1<<i) != 0 {
			terms = append(terms, "1u << NCCLOTF2_"+strings.ToUpper(
				regexp.MustCompile("([a-z0-9])([A-Z])").ReplaceAllString(e, "${1}_$2")))
		}
	}
	if mask&api.NetSumsBit != 0 {
		terms = append(terms, "NCCLOTF2_RECORD_NET_SUMS")
	}
	return strings.Join(terms, " | ")
}
