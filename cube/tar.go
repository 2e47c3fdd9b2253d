// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"fmt"
	"strconv"
)

const (
	tarBlock = 512
	tarMagic = "ustar"
	// maxMember is the largest size in a header; libraries write larger members in a way of their own, which is
	// untested.
	maxMember     = 0x1FFFFFFFF - 1
	maxMemberName = 99 // bytes
)

// tarFields are the fields of a header: where they are, and what is written into those that are always the same. The
// reference reader looks at the magic of the first header, and at names, sizes and types.
var tarFields = struct{ name, mode, uid, gid, size, mtime, checksum, typeflag, magic, uname, gname tarField }{
	name:  tarField{0, 100, ""},
	mode:  tarField{100, 8, "0000600"},
	uid:   tarField{108, 8, "0000000"},
	gid:   tarField{116, 8, "0000000"},
	size:  tarField{124, 12, ""},
	mtime: tarField{136, 12, "00000000000"},
	// always the same, so that profiles of the same values are the same bytes
	checksum: tarField{148, 8, "        "}, // counts as blanks in the sum
	typeflag: tarField{156, 1, "0"},
	magic:    tarField{257, 8, tarMagic + "\x0000"},
	uname:    tarField{265, 32, "nouser"},
	gname:    tarField{297, 32, "users"},
}

type tarField struct {
	at, size int
	constant string
}

func (f tarField) bytesIn(header []byte) []byte { return header[f.at : f.at+f.size] }

// tarHeader makes the header of a plain file.
func tarHeader(name string, size int64) []byte {
	h := make([]byte, tarBlock)
	t := &tarFields
	for _, f := range []tarField{t.mode, t.uid, t.gid, t.mtime, t.checksum, t.typeflag, t.magic, t.uname, t.gname} {
		copy(f.bytesIn(h), f.constant)
	}
	copy(t.name.bytesIn(h), name)
	copy(t.size.bytesIn(h), fmt.Sprintf("%011o", size))
	copy(t.checksum.bytesIn(h), fmt.Sprintf("%06o\x00 ", tarSum(h)))
	return h
}

// tarSum is the sum of a header's bytes, the checksum's own as blanks.
func tarSum(h []byte) (sum int) {
	for i, b := range h {
		if at := i - tarFields.checksum.at; at >= 0 && at < tarFields.checksum.size {
			b = ' '
		}
		sum += int(b)
	}
	return sum
}

// tarNumber reads a number as the reference reader does: octal digits up to the first other byte. Blanks in front,
// which other writers leave, are skipped.
func tarNumber(field []byte) (int64, error) {
	digits := bytes.TrimLeft(field, " ")
	if i := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '7' }); i >= 0 {
		if c := digits[i]; c != 0 && c != ' ' {
			return 0, corrupt("number %q in a tar header is not octal", field)
		}
		digits = digits[:i]
	}
	n, err := strconv.ParseInt(string(digits), 8, 64)
	if err != nil {
		return 0, corrupt("number %q in a tar header is not octal", field)
	}
	return n, nil
}

// tarNext returns the offset of the header after a member. The reader of the format goes one block further than tar if
// the size is a multiple of 512.
func tarNext(header, size int64) int64 {
	if size == 0 {
		return header + tarBlock
	}
	return header + tarBlock + (size/tarBlock+1)*tarBlock
}
