// SPDX-License-Identifier: Apache-2.0

// Package abi holds NCCL's profiler API to its published layouts: from the table in testdata it makes
// plugin/abi_check.c, whose assertions the C compiler checks whenever the plugin is built.
package abi

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
)

type field struct {
	Name   string `json:"name"`
	CType  string `json:"ctype"`
	Offset int    `json:"offset"`
	Size   int    `json:"size"`
}

type layout struct {
	Size   int     `json:"size"`
	Align  int     `json:"align"`
	Fields []field `json:"fields"`
}

type published struct {
	Versions map[string]struct {
		PluginStruct layout         `json:"plugin_struct"`
		EventDescr   layout         `json:"event_descr"`
		StateArgs    layout         `json:"state_args"`
		EventTypes   map[string]int `json:"event_types"`
		States       map[string]int `json:"states"`
	} `json:"versions"`
	NetPlugin struct {
		Descriptors map[string]layout `json:"descriptors"`
	} `json:"net_plugin"`
}

// typeNames are our names for NCCL's event types; states are those whose argument is looked at.
var typeNames = map[string]string{
	"ncclProfileGroup": "GROUP", "ncclProfileColl": "COLL", "ncclProfileP2p": "P2P", "ncclProfileProxyOp": "PROXY_OP",
	"ncclProfileProxyStep": "PROXY_STEP", "ncclProfileProxyCtrl": "PROXY_CTRL", "ncclProfileKernelCh": "KERNEL_CH",
	"ncclProfileNetPlugin": "NET_PLUGIN", "ncclProfileGroupApi": "GROUP_API", "ncclProfileCollApi": "COLL_API",
	"ncclProfileP2pApi": "P2P_API", "ncclProfileKernelLaunch": "KERNEL_LAUNCH", "ncclProfileCeColl": "CE_COLL",
	"ncclProfileCeSync": "CE_SYNC", "ncclProfileCeBatch": "CE_BATCH", "ncclProfileKernelPhase": "KERNEL_PHASE",
}

var stateNames = map[string]string{
	"ncclProfilerProxyOpSendPosted": "OP_SEND_POSTED", "ncclProfilerProxyOpRecvDone": "OP_RECV_DONE",
	"ncclProfilerProxyStepSendGPUWait": "STEP_SEND_GPU_WAIT", "ncclProfilerProxyStepRecvGPUWait": "STEP_RECV_GPU_WAIT",
	"ncclProfilerProxyCtrlIdle": "CTRL_IDLE", "ncclProfilerProxyCtrlAppendEnd": "CTRL_APPEND_END",
	"ncclProfilerProxyStepSendPeerWait_v4": "STEP_SEND_PEER_WAIT", "ncclProfilerNetPluginUpdate": "NET_PLUGIN_UPDATE",
	"ncclProfilerKernelChStop": "KERNEL_CH_STOP", "ncclProfilerKernelPhaseStop": "KERNEL_PHASE_STOP",
}

func assertLayout(b *strings.Builder, c string, l layout) {
	fmt.Fprintf(b, "SIZE(%s, %d, %d);\n", c, l.Size, l.Align)
	for _, f := range l.Fields {
		fmt.Fprintf(b, "AT(%s, %s, %d, %d);\n", c, f.Name, f.Offset, f.Size)
	}
}

func check(p *published) string {
	var b strings.Builder
	b.WriteString(`/* SPDX-License-Identifier: Apache-2.0
 *
 * Made from the published layouts (abi/testdata/nccl-profiler-abi.json) by the test in plugin/abi; do
 * not edit. It holds no code: the compiler checks it.
 */
`)
	var versions []string
	for v := range p.Versions {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	for _, v := range versions {
		fmt.Fprintf(&b, "#include \"abi_%s.h\"\n", v)
	}
	b.WriteString(`
#define SIZE(type, size, align) _Static_assert(sizeof(type) == (size) && _Alignof(type) == (align), #type)
#define AT(type, member, offset, size)                                                            \
  _Static_assert(offsetof(type, member) == (offset) && sizeof(((type *)0)->member) == (size), #type "." #member)
#define SAME(a, b, member) _Static_assert(offsetof(a, member) == offsetof(b, member), #a "." #member)
`)
	newest := versions[len(versions)-1]
	reference := p.Versions[newest].EventDescr
	for _, v := range versions {
		x := p.Versions[v]
		descr := "struct ncclotf2_descr_" + v
		fmt.Fprintf(&b, "\n/* %s */\n", v)
		assertLayout(&b, descr, x.EventDescr)
		assertLayout(&b, "struct ncclotf2_plugin_"+v, x.PluginStruct)
		args := "union ncclotf2_state_args"
		if v <= "v3" {
			args += "_v1"
		}
		assertLayout(&b, args, x.StateArgs)
		known := 0
		for _, bit := range x.EventTypes {
			known |= bit
		}
		fmt.Fprintf(&b, "_Static_assert(NCCLOTF2_KNOWN_%s == %#x, \"event types\");\n", strings.ToUpper(v), known)
		// The decoder reads all versions from 4 on as the newest.
		if v >= "v4" {
			for _, f := range x.EventDescr.Fields {
				if slices.ContainsFunc(reference.Fields, func(r field) bool { return r.Name == f.Name }) {
					fmt.Fprintf(&b, "SAME(%s, struct ncclotf2_descr_%s, %s);\n", descr, newest, f.Name)
				}
			}
		}
	}
	b.WriteString("\n/* values */\n")
	for _, list := range []struct {
		values map[string]int
		names  map[string]string
		format string
	}{
		{p.Versions[newest].EventTypes, typeNames, "_Static_assert(1u << NCCLOTF2_%s == %d, \"%s\");\n"},
		{p.Versions[newest].States, stateNames, "_Static_assert(NCCLOTF2_STATE_%s == %d, \"%s\");\n"},
	} {
		var names []string
		for n := range list.names {
			names = append(names, n)
		}
		slices.SortFunc(names, func(x, y string) int { return list.values[x] - list.values[y] })
		for _, n := range names {
			fmt.Fprintf(&b, list.format, list.names[n], list.values[n], n)
		}
	}
	b.WriteString("\n/* network plugins */\n")
	assertLayout(&b, "struct ncclotf2_net_ib", p.NetPlugin.Descriptors["ncclProfilerNetIbDescr_v1_t"])
	assertLayout(&b, "struct ncclotf2_net_socket", p.NetPlugin.Descriptors["ncclProfilerNetSockDescr_v1_t"])
	return b.String()
}

func TestTheCompilerChecksThePublishedLayouts(t *testing.T) {
	text, err := os.ReadFile("testdata/nccl-profiler-abi.json")
	if err != nil {
		t.Fatal(err)
	}
	var p published
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	newest := p.Versions["v7"]
	if len(p.Versions) != 7 || len(newest.EventTypes) != len(typeNames) || newest.States["ncclProfilerKernelPhaseStop"] != 31 {
		t.Fatalf("%d versions, %d event types: not the table that this test knows", len(p.Versions), len(newest.EventTypes))
	}
	golden.Text(t, "../abi_check.c", check(&p))
}
