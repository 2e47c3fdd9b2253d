// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// FuzzOrders: whatever the files say by which `ctl` and collectors speak to each other, they are refused or understood.
func FuzzOrders(f *testing.F) {
	f.Add([]byte(
		`{"version":1,"order":3,"ask":2,"new":{"First":5,"Last":9},"windows":[{"id":"7","nranks":2,"first":"3","last":"18446744073709551615"}],"events":7}`),
		[]byte(`{"shard":"x","time":"2026-01-01T00:00:00Z","comms":[{"index":0,"id":"7","nranks":2,"rank":1,"collectives":5,"first":"3","last":"9"},{"index":1}]}`))
	f.Add([]byte(`{}`),
		[]byte(`{"comms":[{"collectives":18446744073709551615,"messages":18446744073709551615,"replayed":1}]}`))
	f.Fuzz(func(t *testing.T, order, status []byte) {
		dir := t.TempDir()
		testkit.Must(t, errors.Join(os.WriteFile(filepath.Join(dir, FileName), order, 0o600),
			os.WriteFile(filepath.Join(dir, StatusFile), status, 0o600)))
		o, err := Read(dir)
		testkit.Require(t, (o == nil) != (err == nil), "%v, %v", o, err)
		s, err := ReadStatus(dir)
		if s == nil || err != nil {
			return
		}
		later := *s
		later.Time = later.Time.Add(time.Second)
		for _, on := range []bool{true, false} {
			changes, waiting := chooseWindows([]Status{*s}, []Status{later}, on, time.Second, on)
			testkit.Check(t, len(changes)+len(waiting) <= len(s.Comms),
				"%d communicators, %d changes, %d waiting", len(s.Comms), len(changes), len(waiting))
		}
	})
}
