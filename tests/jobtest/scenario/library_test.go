// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"path/filepath"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestThePluginSeesWhichLibraryCalls(t *testing.T) {
	for _, test := range []struct {
		name, file string
		env        []string
		version    int
	}{
		{"", "replay-host", nil, 0},
		{"nccl", "libnccl.so.2", nil, 22907},
		{"rccl", "librccl.so.1", nil, 22907},
		{"rccl", "librccl.so.1", []string{"REPLAY_HOST_VERSION=22707"}, 22707},
	} {
		for _, says := range []string{"recording", "options"} {
			s := New("library", "2.29.7")
			opt := replay.Options{Env: test.env}
			if says == "recording" {
				s.Library = test.name
			} else {
				opt.Library = test.name
			}
			ranks := s.Job(1, Comm{ID: 1})
			Leave(ranks)
			h := play(t, s, opt)
			l := h.lines[0][0]
			testkit.Check(t, filepath.Base(l.Library) == test.file && l.Version == test.version,
				"%q by the %s: the logger is in %s, version %d", test.name, says, l.Library, l.Version)
			testkit.Check(t, h.Total().Infos == 1, "%q: %d lines were logged", test.name, h.Total().Infos)
		}
	}
}
