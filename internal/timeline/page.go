// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bufio"
	"bytes"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/flate"
)

// asset is the page without data and program: markup, the initial style, and the code that unpacks the program. `make
// page` builds it, as well as the program, from page/.
//
//go:embed asset/page.html
var asset []byte

// program is the page's code and style. The page contains it compressed, because it is most of the size of a page for a
// short run.
//
//go:embed asset/page.js
var program []byte

// Placeholders in the asset: for data, program, and the permission to connect.
var (
	dataMark    = []byte("<!--data-->")
	programMark = []byte("<!--program-->")
	connectMark = []byte("connect-src 'none'")
	connectSelf = []byte("connect-src 'self'") // of served pages
)

// withProgram is the asset with the program inserted.
var withProgram = sync.OnceValues(func() ([]byte, error) {
	before, after, ok := bytes.Cut(asset, programMark)
	if !ok {
		return nil, fmt.Errorf("the built page has no place for its program: make page")
	}
	// The program is compressed once, at the best level. For blocks of data that level takes 20 times as long and does
	// not make them smaller.
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return slices.Concat(before, element("program", packed.Bytes()), after), nil
})

// element returns an element with compressed data and an id.
func element(id string, packed []byte) []byte {
	return fmt.Appendf(nil, "<script type=\"application/octet-stream\" id=%q>%s</script>\n", id,
		base64.StdEncoding.EncodeToString(packed))
}

// Options configure a page.
type Options struct {
	Title    string // title of the page; the archive's name
	Tool     string // name and version of the program
	Progress func(done, total int)
}

// blobSize is the approximate size of blocks in one element of the page.
const blobSize = 3 << 20

// WritePage writes the page with all its data. It needs only a browser.
func (d *Data) WritePage(w io.Writer, o Options) error {
	page, err := withProgram()
	if err != nil {
		return err
	}
	before, after, ok := bytes.Cut(page, dataMark)
	if !ok {
		return fmt.Errorf("the built page has no place for data: make page")
	}
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(before); err != nil {
		return err
	}
	s := &pageSink{w: out}
	p, err := d.write(s, o.Progress)
	if err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	h := d.head(p, &o)
	h.Blocks = s.places
	packed, err := h.packed()
	if err != nil {
		return err
	}
	out.Write(element("head", packed))
	if _, err := out.Write(after); err != nil {
		return err
	}
	return out.Flush()
}

// pageSink puts blocks into elements. Each block begins at a multiple of three bytes, so that the page can cut its
// Base64 out of the text.
type pageSink struct {
	w      io.Writer
	blob   []byte
	blobs  int
	places [][3]int // by block: element, first byte, number of bytes
}

func (s *pageSink) block(packed []byte) error {
	if len(s.blob) > 0 && len(s.blob)+len(packed) > blobSize {
		if err := s.flush(); err != nil {
			return err
		}
	}
	s.places = append(s.places, [3]int{s.blobs, len(s.blob), len(packed)})
	s.blob = append(s.blob, packed...)
	for len(s.blob)%3 != 0 {
		s.blob = append(s.blob, 0)
	}
	return nil
}

func (s *pageSink) flush() error {
	if len(s.blob) == 0 {
		return nil
	}
	_, err := s.w.Write(element(fmt.Sprint("b", s.blobs), s.blob))
	s.blob = s.blob[:0]
	s.blobs++
	return err
}
