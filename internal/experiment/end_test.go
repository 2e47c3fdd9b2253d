// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"os"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestEndWords(t *testing.T) {
	status := func(s uint32) *uint32 { return &s }
	for _, tc := range []struct {
		end  *description.End
		text string
		died bool
	}{
		{nil, "", false},
		{&description.End{}, "ended without exit (killed, or by _exit)", true},
		{&description.End{Called: true}, "exited", false},
		{&description.End{Status: status(0)}, "exited", false},
		{&description.End{Status: status(0), Called: true}, "exited", false},
		{&description.End{Status: status(3 << 8), Called: true}, "exited with code 3", true},
		{&description.End{Status: status(9)}, "killed by SIGKILL", true},
		{&description.End{Status: status(9), Called: true}, "killed by SIGKILL", true},
		{&description.End{Status: status(15)}, "killed by SIGTERM", true},
		{&description.End{Status: status(11 | 0x80)}, "killed by SIGSEGV", true}, // with a core file
		{&description.End{Status: status(6)}, "killed by SIGABRT", true},
		{&description.End{Status: status(40)}, "killed by signal 40", true},
	} {
		testkit.Check(t, tc.end.String() == tc.text && tc.end.Died() == tc.died,
			"%+v: %q, died %v; want %q, %v", tc.end, tc.end, tc.end.Died(), tc.text, tc.died)
	}
}

// What a parent knows is noted where nobody else knew.
func TestTellStatus(t *testing.T) {
	dir := t.TempDir()
	host := testkit.Value(os.Hostname())(t)
	known := uint32(9)
	for uuid, p := range map[string]*description.Process{
		"child": {PID: 10, Host: host, End: &description.End{}}, "other": {PID: 11, Host: host, End: &description.End{}},
		"elsewhere": {PID: 10, Host: host + "x", End: &description.End{}},
		"known":     {PID: 10, Host: host, End: &description.End{Status: &known}}, "running": {PID: 10, Host: host},
	} {
		p.Version, p.UUID = description.Version, uuid
		s, err := Create(dir, uuid)
		if err == nil {
			err = s.Write(p)
		}
		if err == nil && p.End != nil {
			err = s.Finish()
		}
		testkit.Must(t, err)
		defer s.Close()
	}
	testkit.Must(t, RecordStatus(dir, 10, 15))
	entries, err := List(dir)
	testkit.Require(t, err == nil && len(entries) == 5, "%v %v", entries, err)
	for _, e := range entries {
		want := map[string]string{"child": "killed by SIGTERM", "known": "killed by SIGKILL", "running": ""}
		text, ok := want[e.Process.UUID]
		if !ok {
			text = (&description.End{}).String()
		}
		testkit.Equal(t, e.Process.End.String(), text, "%s", e.Process.UUID)
	}
}
