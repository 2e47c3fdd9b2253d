// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// Copied definitions say the same in the same order, whatever the byte order and the size of chunks, and what is
// written behind them follows.
func TestCopiedDefinitionsAreUnchanged(t *testing.T) {
	for _, path := range fixtures(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			anchor := testkit.Value(ReadAnchor(path))(t)
			from := strings.TrimSuffix(path, ".otf2") + ".def"
			want := testkit.Value(ReadGlobalDefs(from, anchor.DefChunkSize))(t)
			for _, chunk := range []uint64{MinChunkSize, MaxChunkSize} {
				to := filepath.Join(t.TempDir(), "copy.def")
				w := newDefs(t, to, chunk)
				testkit.Must(t, w.Copy(from, anchor.DefChunkSize))
				testkit.Equal(t, w.Count(), uint64(len(want.Order)), "records, %d were there", len(want.Order))
				const last = 1 << 30
				_ = w.String(last, "behind them")
				testkit.Must(t, w.Close())
				got := testkit.Value(ReadGlobalDefs(to, chunk))(t)
				n := len(got.Order) - 1
				testkit.Check(t, got.Order[n] == DefString && got.String(last) == "behind them",
					"at the end: %v", got.Order[n])
				got.Order, got.Strings = got.Order[:n], got.Strings[:len(got.Strings)-1]
				got.finish()
				testkit.Check(t, reflect.DeepEqual(got, want), "chunks of %d: the definitions differ", chunk)
			}
		})
	}
}

func newDefs(t *testing.T, path string, chunk uint64) *GlobalDefWriter {
	t.Helper()
	return testkit.Value(CreateGlobalDefWriter(path, chunk))(t)
}

// Kinds of later versions are copied, those that are not wanted are not, and damage is reported.
func TestCopyOfUnusualDefinitions(t *testing.T) {
	const unknown = 99
	record := func(id byte, fields ...byte) []byte { return append([]byte{id, byte(len(fields))}, fields...) }
	whole := appendHeader(nil, 1, 0)
	whole = append(whole, record(byte(DefClockProperties), 1, 1, 1, 2, 1, 3, 1, 4)...)
	whole = append(whole, record(byte(DefString), 0, 'a', 0)...)
	whole = append(whole, record(unknown, 7, 0, 9)...)
	whole = append(whole, recordEndOfFile, recordEndOfBuffer)
	for _, c := range []struct {
		name    string
		content []byte
		kinds   []DefKind
		err     error
	}{
		{"whole", whole, []DefKind{DefString, unknown}, nil},
		{"cut off", whole[:len(whole)-4], []DefKind{DefString}, ErrTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, to := filepath.Join(t.TempDir(), "from.def"), filepath.Join(t.TempDir(), "to.def")
			testkit.Must(t, os.WriteFile(from, c.content, 0o600))
			w := newDefs(t, to, 0)
			err := w.Copy(from, 0, DefClockProperties)
			testkit.Check(t, errors.Is(err, c.err), "%v, want %v", err, c.err)
			testkit.Must(t, w.Close())
			got, err := ReadGlobalDefs(to, 0)
			testkit.Check(t, err == nil && reflect.DeepEqual(got.Order, c.kinds), "%v, %v", got.Order, err)
			if len(c.kinds) == 2 && !reflect.DeepEqual(got.Other, []Record{{ID: unknown, Args: []uint64{7, 0, 9}}}) {
				t.Errorf("of a kind that is not known: %+v", got.Other)
			}
		})
	}
}
