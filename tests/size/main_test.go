// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestWhatIsCounted(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"a/code.go": "// One\n\npackage a\n\n// T is\n// a type.\ntype T struct{ A, b int } // no line of " +
			"its own\n\nfunc (T) Do() {\n\t/* in\n\t   it */\n}\n\nvar X, y = 1, 2\n",
		"a/code_test.go":     "package a\n\nfunc Long() {\n\n\n\n\n\n}\n",
		"a/zz_made.go":       "package a\n",
		"a/testdata/more.go": "package more\n",
	} {
		path := filepath.Join(root, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Write(t, path, []byte(text))
	}
	s := survey{packs: make(map[string]*pack)}
	testkit.Must(t, s.read(root))
	p := s.packs[filepath.Join(root, "a")]
	if len(s.packs) != 1 || p.code != (lines{10, 5}) || p.tests != (lines{3, 0}) || p.exported != 4 {
		t.Errorf("%+v of %d packages", p, len(s.packs))
	}
	if len(s.functions) != 1 || s.functions[0].name != "Do" || s.functions[0].lines != 4 {
		t.Errorf("%+v", s.functions)
	}
	var out strings.Builder
	if err := s.print(&out, 9); err != nil || !strings.Contains(out.String(), "/a (10)") {
		t.Errorf("%v\n%s", err, out.String())
	}
}
