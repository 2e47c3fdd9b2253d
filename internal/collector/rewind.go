// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment/description"
)

// rewind brings the shard of a dead collector back to its last checkpoint and returns its description then; nil if
// there never was one.
func rewind(path string) (*description.Process, error) {
	p, err := experiment.ReadCheckpoint(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	locations := make(map[uint32]*description.Location)
	for i := range p.Locations {
		locations[p.Locations[i].Number] = &p.Locations[i]
	}
	for _, file := range experiment.EventFiles(path) {
		number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), 10, 32)
		if err != nil {
			continue
		}
		if l := locations[uint32(number)]; l == nil {
			err = os.Remove(file)
		} else {
			err = cutEvents(file, int64(p.EventChunkSize), l.Bytes, l.Events)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, experiment.Rewind(path, p)
}

// Of event files (docs/otf2-format.md): chunks begin with a header that has the number of the chunk's last event, and
// a file ends with an end mark.
const (
	lastEventAt = 10
	endMark     = "\x02\x01"
)

// cutEvents cuts an event file of chunks of a size to the length that it had when it held so many events.
func cutEvents(path string, chunkSize, bytes int64, events uint64) error {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	end := bytes - int64(len(endMark))
	if st.Size() < bytes || end < lastEventAt+8 || chunkSize <= 0 {
		return fmt.Errorf("%s has %d bytes, %d when it was last flushed", path, st.Size(), bytes)
	}
	if _, err := file.WriteAt([]byte(endMark), end); err != nil {
		return err
	}
	chunk := end / chunkSize * chunkSize
	if _, err := file.WriteAt(binary.LittleEndian.AppendUint64(nil, events), chunk+lastEventAt); err != nil {
		return err
	}
	return file.Truncate(bytes)
}
