// SPDX-License-Identifier: Apache-2.0

package files

import (
	"os"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment/jobs"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// placePieces joins the event files that several collectors wrote for one location into the file to.
func (out *Events) placePieces(i int, l *Row, to string, times *jobs.Lifespan) (err error) {
	var files []otf2.EventPiece
	defer func() {
		for _, f := range files {
			_ = os.Remove(f.Path)
		}
	}()
	for k, p := range l.Process.Pieces {
		for _, from := range p.Shard.Locations {
			if n, ok := p.Numbers[from.Number]; !ok || n != l.Source.Number || from.Events == 0 {
				continue
			}
			copied := to + "." + strconv.Itoa(k) + "." + strconv.Itoa(len(files))
			scan, err := out.copyFile(i, l.Process, p, &from, copied)
			if err != nil {
				return err
			} else if scan == nil {
				continue
			}
			files = append(files, otf2.EventPiece{Path: copied, ChunkSize: p.Shard.EventChunkSize, Maps: p.Maps})
			if scan.Events > 0 {
				times.Begin, times.End = min(times.Begin, uint64(scan.First)), max(times.End, uint64(scan.Last))
			}
		}
	}
	if len(files) == 0 {
		return writeEmpty(to)
	}
	out.joined()
	if err := Remove(to); err != nil {
		return err
	}
	if l.Events, err = otf2.JoinEvents(to, out.chunk, files); err != nil {
		return err
	}
	return nil
}

func (out *Events) joined() {
	out.mu.Lock()
	defer out.mu.Unlock()
	out.Copied++
	out.Rewritten++
}
