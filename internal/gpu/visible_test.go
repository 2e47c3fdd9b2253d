// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// variables is an environment: "NAME=value".
func variables(vars ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range vars {
			if n, value, _ := strings.Cut(v, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestLocate(t *testing.T) {
	const byAddress = "CUDA_DEVICE_ORDER=PCI_BUS_ID"
	number := func(n ...int) (list []located) {
		for _, i := range n {
			list = append(list, located{index: i})
		}
		return list
	}
	for _, c := range []struct {
		name      string
		ordinal   int
		vars      []string
		sameModel bool
		want      []located
		source    string
		ok        bool
	}{
		{name: "unset, one model", ordinal: 2, sameModel: true, want: number(0, 1, 2), source: "ordinal", ok: true},
		{name: "unset, of several kinds", ordinal: 0, want: number(0), source: "ordinal"},
		{name: "unset, of several kinds, by address", ordinal: 1, vars: []string{byAddress}, want: number(0, 1),
			source: "ordinal", ok: true},
		{name: "another order", ordinal: 0, vars: []string{"CUDA_DEVICE_ORDER=FASTEST_FIRST"}, want: number(0),
			source: "ordinal"},
		{name: "set to nothing", ordinal: 0, vars: []string{visibleDevices + "="}, sameModel: true,
			source: visibleDevices},
		{name: "numbers", ordinal: 1, vars: []string{visibleDevices + "=2,1"}, sameModel: true, want: number(2, 1),
			source: visibleDevices, ok: true},
		{name: "numbers, of several kinds", ordinal: 1, vars: []string{visibleDevices + "=2,1"}},
		{name: "before the end of the list", ordinal: 1, vars: []string{visibleDevices + "=0,2,-1,1"}, sameModel: true,
			want: number(0, 2), source: visibleDevices, ok: true},
		{name: "behind the end of the list", ordinal: 2, vars: []string{visibleDevices + "=0,2,-1,1"}, sameModel: true,
			want: number(0, 2), source: visibleDevices},
		{name: "behind what is none", ordinal: 1, vars: []string{visibleDevices + "=0,all,1"}, sameModel: true,
			want: number(0), source: visibleDevices},
		{name: "spaces", ordinal: 1, vars: []string{visibleDevices + "= 3 , 1"}, sameModel: true, want: number(3, 1),
			source: visibleDevices, ok: true},
		{name: "beyond the list", ordinal: 2, vars: []string{visibleDevices + "=3,1"}, sameModel: true,
			want: number(3, 1), source: visibleDevices},
		{
			name: "UUIDs, of several kinds", ordinal: 1, vars: []string{visibleDevices + "=GPU-89,MIG-" + uuidA},
			want: []located{{-1, "GPU-89"}, {-1, "MIG-" + uuidA}}, source: visibleDevices, ok: true,
		},
		{name: "unknown number", ordinal: -1, sameModel: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, source, ok := locate(c.ordinal, variables(c.vars...), c.sameModel)
			testkit.Check(t, reflect.DeepEqual(got, c.want) && source == c.source && ok == c.ok,
				"%v, %q, %v; want %v, %q, %v", got, source, ok, c.want, c.source, c.ok)
		})
	}
	_, _, ok := locate(0, nil, true)
	testkit.Check(t, !ok, "an environment that cannot be read tells a device")
}

func TestEnvironmentIsThatOfTheProcess(t *testing.T) {
	cmd := exec.Command("cat")
	cmd.Env = []string{"CUDA_VISIBLE_DEVICES=3,GPU-89=x", "EMPTY=", "CUDA_VISIBLE_DEVICES=1"}
	in := testkit.Value(cmd.StdinPipe())(t)
	out := testkit.Value(cmd.StdoutPipe())(t)
	testkit.Must(t, cmd.Start())
	defer cmd.Wait()
	defer in.Close()
	testkit.Value(in.Write([]byte("x")))(t)
	if _, err := out.Read(make([]byte, 1)); err != nil { // it is up
		t.Fatal(err)
	}
	lookup := testkit.Value(Environment(cmd.Process.Pid))(t)
	// Package os/exec keeps the last of equal names.
	v, set := lookup("CUDA_VISIBLE_DEVICES")
	testkit.Check(t, v == "1" && set, "%q, %v", v, set)
	v, set = lookup("EMPTY")
	testkit.Check(t, v == "" && set, "%q, %v", v, set)
	_, set = lookup("HOME")
	testkit.Check(t, !set, "a variable that was not given is set")
	_, err := Environment(1 << 30)
	testkit.Check(t, os.IsNotExist(err), "of no process: %v", err)
}
