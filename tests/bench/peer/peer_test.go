// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestPluginsOfTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "other.so")
	testkit.Must(t, os.WriteFile(file, nil, 0o644))
	var l List
	for _, bad := range []string{"", "name", "=" + file, "name=" + file + ".not", "name=" + file + ",VALUE",
		"name=" + file + ",kept=("} {
		if l.Set(bad) == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if err := l.Set("other=" + file + `,OUT={dir}/out,EVENTS=7,kept="op":\s*1{1,2}`); err != nil || len(l) != 1 {
		t.Fatalf("%v, %v", l, err)
	}
	p := &l[0]
	if p.Name != "other" || p.File != file ||
		!slices.Equal(p.Environment("/run"), []string{"OUT=/run/out", "EVENTS=7"}) {
		t.Errorf("%+v", p)
	}
	run := filepath.Join(dir, "run")
	for name, text := range map[string]string{"a": "\"op\": 1 \"op\":11\n", "below/b": "\"op\":1\n\"op\":2"} {
		path := filepath.Join(run, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	if left, err := p.Look(run); err != nil || left.Operations != 3 || left.Bytes != 16+13 {
		t.Errorf("%+v, %v", left, err)
	}
	p.Kept = nil
	if left, err := p.Look(run); err != nil || left.Operations != -1 {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := p.Look(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a folder that is not there")
	}
}
