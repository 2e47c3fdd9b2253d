// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// section is a member's content.
type section struct {
	r        io.ReaderAt
	at, size int64
}

func (s section) read(off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off+n > s.size {
		return nil, truncated("%d bytes at %d of %d", n, off, s.size)
	}
	b := make([]byte, n)
	return b, s.readInto(b, off)
}

func (s section) readInto(b []byte, off int64) error {
	n, err := s.r.ReadAt(b, s.at+off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return truncated("%d of %d bytes at %d", n, len(b), off)
	}
	return err
}

// member is a file in a profile.
type member struct {
	name string
	section
}

// tarTypes are the kinds of headers that profiles have.
const (
	tarFile     = '0'
	tarFileOld  = 0
	tarExtended = 'x' // the size of members of 8 GiB and more
)

// maxBlank is how many empty bytes end a tar file at the latest: tar fills up its last record of 10 KiB with them.
const maxBlank = 1 << 20

// endOfTar is how many empty blocks end a tar file at least.
const endOfTar = 2

// scanTar lists the members of a file. It goes from header to header as the reference reader does, and refuses what
// that reader would step over or read as something else. What stands behind the end is none of the file's.
func scanTar(r io.ReaderAt, size int64) ([]member, error) {
	var list []member
	file := section{r, 0, size}
	large := int64(-1) // the size that an extended header gives for the next member
	blank := int64(0)  // bytes of the empty blocks before this one
	for at := int64(0); at < size; {
		h, err := file.read(at, min(tarBlock, size-at))
		if err != nil {
			return nil, err
		}
		if zero(h) {
			at += tarBlock
			if blank += tarBlock; blank >= maxBlank {
				break // a sparse file may go on for ever
			}
			continue
		}
		ended := len(list) > 0 && (blank >= endOfTar*tarBlock || len(h) < tarBlock && len(bytes.TrimSpace(h)) == 0)
		if ended && !isTarHeader(h) {
			break
		}
		blank = 0
		m, typeflag, err := readTarHeader(h)
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", at, err)
		}
		if large >= 0 {
			m.size, large = large, -1
		}
		m.section.r, m.at = r, at+tarBlock
		if m.size > size-m.at {
			return nil, truncated("member %s of %d bytes begins at byte %d of %d", m.name, m.size, m.at, size)
		}
		switch typeflag {
		case tarFile, tarFileOld:
			if err := extraBlock(file, m); err != nil {
				return nil, err
			}
			list = append(list, m)
		case tarExtended:
			if large, err = extendedSize(m); err != nil {
				return nil, err
			}
		default:
			return nil, unsupported("byte %d: %s is of type %q: profiles have plain files only", at, m.name, typeflag)
		}
		at = tarNext(at, m.size)
	}
	return list, nil
}

func readTarHeader(h []byte) (member, byte, error) {
	var m member
	if len(h) < tarBlock {
		return m, 0, truncated("a tar header of %d bytes", len(h))
	}
	if !isTarHeader(h) {
		return m, 0, corrupt("no tar header of the format ustar")
	}
	t := &tarFields
	name, _, _ := bytes.Cut(t.name.bytesIn(h), []byte{0})
	m.name = string(name)
	var err error
	m.size, err = tarNumber(t.size.bytesIn(h))
	return m, h[t.typeflag.at], err
}

// isTarHeader checks the mark of the format. Checksums are no evidence: the reference reader does not check them, and
// the libraries of CUBE 4.8 write wrong ones.
func isTarHeader(h []byte) bool {
	return len(h) == tarBlock && bytes.HasPrefix(tarFields.magic.bytesIn(h), []byte(tarMagic))
}

// extraBlock refuses a member whose size is a multiple of 512 and that is followed as in any tar file: readers of the
// format would lose the next member.
func extraBlock(file section, m member) error {
	if m.size == 0 || m.size%tarBlock != 0 {
		return nil
	}
	end := m.at + m.size
	b, err := file.read(end, min(tarBlock, file.size-end))
	if err != nil {
		return err
	}
	if !zero(b) {
		return corrupt(
			"member %s has %d bytes, a multiple of %d, and no block of zeros behind its end: readers of profiles "+
				"lose the next member", m.name, m.size, tarBlock)
	}
	return nil
}

// extendedSize reads the one record that the libraries write: "NN size=<decimal>\n".
func extendedSize(m member) (int64, error) {
	b, err := m.read(0, min(m.size, tarBlock))
	if err != nil {
		return 0, err
	}
	var length, size int64
	if n, err := fmt.Sscanf(string(b), "%d size=%d\n", &length, &size); n != 2 || err != nil || size < 0 ||
		length != m.size {
		return 0, unsupported(
			"an extended tar header with %q: profiles have the size of a large member there and nothing else", b)
	}
	return size, nil
}

func zero(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}
