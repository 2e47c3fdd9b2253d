// SPDX-License-Identifier: Apache-2.0

package otf2_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2print"
)

// output runs a reference tool, bounded in time because it may loop on broken files, and returns its output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

func text(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(otf2print.Title)
	testkit.Must(t, write(&b))
	return b.String()
}

// compareAll compares all that both tools print of an archive, and the reference must not warn.
func compareAll(t *testing.T, anchor string) {
	t.Helper()
	need.Reference(t, "otf2-print")
	a := testkit.Value(otf2.Open(anchor, nil))(t)
	for _, c := range []struct {
		args   []string
		opts   otf2print.Options
		events bool
	}{
		{nil, otf2print.Options{}, true},
		{[]string{"--timestamps=offset", "--unwind-calling-context"}, otf2print.Options{Relative: true, Unwind: true},
			true},
		{[]string{"-G"}, otf2print.Options{}, false},
		{[]string{"-I"}, otf2print.Options{}, false},
		{[]string{"-M", "-C"}, otf2print.Options{}, false},
	} {
		c.opts.Zone = time.UTC
		got := text(t, func(b *bytes.Buffer) error {
			switch {
			case c.events && a.Anchor.Snapshots > 0:
				return errors.Join(otf2print.Events(b, a, &c.opts), otf2print.Snapshots(b, a, &c.opts))
			case c.events:
				return otf2print.Events(b, a, &c.opts)
			case c.args[0] == "-G":
				return otf2print.Definitions(b, a, &c.opts)
			case c.args[0] == "-I":
				return otf2print.Anchor(b, a, nil)
			}
			return otf2print.LocalDefs(b, a, &c.opts)
		})
		golden.SameLines(t, strings.Join(c.args, " "), got,
			output(t, "otf2-print", append(append([]string{"-Werror"}, c.args...), anchor)...))
	}
}

// readByPython lets the reference bindings read an archive to its end, definitions included, and gives what they met.
func readByPython(t *testing.T, anchor string) string {
	t.Helper()
	return output(t, need.Python(t), "-c", pythonReader, anchor)
}

const pythonReader = `
import sys, otf2
with otf2.reader.open(sys.argv[1]) as trace:
    n, attributes, kinds = 0, 0, {}
    for location, event in trace.events:
        n += 1
        kinds[type(event).__name__] = kinds.get(type(event).__name__, 0) + 1
        if event.attributes:
            attributes += len(event.attributes)
    print(n, attributes, len(trace.definitions.locations), len(trace.definitions.regions), sorted(kinds.items()))
`
