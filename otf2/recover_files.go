// SPDX-License-Identifier: Apache-2.0

package otf2

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
)

// noteWhole notes a file that needs no repair.
func (r *recovery) noteWhole(path string, records uint64) {
	r.res.Files = append(r.res.Files, RecoveredFile{Path: path, Action: RecoverWhole, Records: records})
}

// noteUnrepairable notes a file that cannot be repaired.
func (r *recovery) noteUnrepairable(path string, records uint64, why string) {
	r.res.Files = append(r.res.Files, RecoveredFile{Path: path, Action: RecoverFailed, Records: records, Detail: why})
}

// createEmpty makes a file without records.
func (r *recovery) createEmpty(path, why string) {
	if !r.opts.DryRun {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			r.noteUnrepairable(path, 0, err.Error())
			return
		}
	}
	r.replace(RecoveredFile{Path: path, Detail: why}, emptyFile())
}

// replace gives a file new content and reports whether it could.
func (r *recovery) replace(f RecoveredFile, content []byte) bool {
	return r.exchange(f, func(out *os.File) error {
		_, err := io.Copy(out, bytes.NewReader(content))
		return err
	})
}

// cut ends an event or snapshot file behind its last whole record.
func (r *recovery) cut(path string, s *scanned, c *countedChange, word string) {
	end := s.end
	if s.records == 0 {
		end = headerSize
	}
	mark := []byte{recordEndOfFile, recordEndOfBuffer}
	last := c.chunks[len(c.chunks)-1]
	switch free := last.start + int64(r.eventChunk) - end; {
	case free == 1:
		mark = mark[:1] // readers look for no more, and the chunk has room for no more
	case free == 0:
		next := scannedChunk{start: end, big: last.big, first: last.last + 1, last: last.last}
		c.chunks = append(c.chunks, next)
		mark = append(make([]byte, headerSize), mark...)
	}
	f := RecoveredFile{Path: path, Records: s.records, Dropped: max(0, s.size-end)}
	f.Detail = fmt.Sprintf("%v at byte %d of %d: kept %s, cut at byte %d", cause(s.flaw), s.flawAt, s.size,
		plural(s.records, word), end)
	r.exchange(f, func(out *os.File) error {
		if err := copyStart(out, path, end); err != nil {
			return err
		}
		if _, err := out.WriteAt(mark, end); err != nil {
			return err
		}
		return patchHeaders(out, c.chunks)
	})
}

// renumber corrects the event numbers in chunk headers.
func (r *recovery) renumber(path string, s *scanned, c *countedChange) {
	f := RecoveredFile{Path: path, Records: s.records,
		Detail: "event numbers corrected in " + plural(uint64(c.wrong), "chunk header")}
	r.exchange(f, func(out *os.File) error {
		if err := copyStart(out, path, s.size); err != nil {
			return err
		}
		return patchHeaders(out, c.chunks)
	})
}

// copyStart copies the first size bytes of a file.
func copyStart(out *os.File, path string, size int64) error {
	in, err := openRegular(path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.CopyN(out, in, size)
	return err
}

func patchHeaders(out *os.File, chunks []scannedChunk) error {
	var b [headerSize]byte
	for _, c := range chunks {
		putHeader(b[:], c.big, c.first, c.last)
		if _, err := out.WriteAt(b[:], c.start); err != nil {
			return err
		}
	}
	return nil
}

// exchange replaces the file, or makes it if there is none: content is written under another name, brought to
// the disk and renamed, so that at any moment the file is the old or the new one. It reports whether that worked.
func (r *recovery) exchange(f RecoveredFile, content func(out *os.File) error) bool {
	f.Action = RecoverRepaired
	mode := fs.FileMode(0o644)
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Action = RecoverCreated
	case err == nil:
		mode = info.Mode().Perm()
	}
	if r.opts.DryRun {
		r.res.Files = append(r.res.Files, f)
		return true
	}
	out, err := atomicfile.Create(f.Path, mode)
	if err != nil {
		r.noteUnrepairable(f.Path, 0, err.Error())
		return false
	}
	defer out.Abandon()
	err = errors.Join(content(out.File), out.Chmod(mode)) // the mode of the file that it replaces, for any umask
	if err == nil && f.Action == RecoverRepaired && !r.opts.DropOriginals {
		f.Original, err = keepOriginal(f.Path)
	}
	if err == nil {
		err = out.Commit(atomicfile.Durable)
	}
	if err != nil {
		r.noteUnrepairable(f.Path, 0, err.Error())
		return false
	}
	r.res.Files = append(r.res.Files, f)
	return true
}

// keepOriginal gives a file a second name, <file>.orig, or <file>.orig.2 and so on where that is taken. Where the
// file system knows no second names it is copied.
func keepOriginal(path string) (string, error) {
	for i := 1; ; i++ {
		name := path + ".orig"
		if i > 1 {
			name += "." + strconv.Itoa(i)
		}
		err := os.Link(path, name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			err = copyFile(name, path)
		}
		return name, err
	}
}

func copyFile(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	return errors.Join(copyStart(out, from, info.Size()), out.Sync(), out.Close())
}
