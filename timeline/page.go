// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bufio"
	"bytes"
	_ "embed" // the page
	"encoding/base64"
	"fmt"
	"io"
)

// asset is the page without data: markup, style and program in one file, made of page/ by `make page`.
//
//go:embed asset/page.html
var asset []byte

// Places in the asset: where the data go, and what the page may connect to.
var (
	dataMark    = []byte("<!--data-->")
	connectMark = []byte("connect-src 'none'")
)

// Options say how the page is made.
type Options struct {
	Title    string // what the page is called, the archive's name
	Tool     string // name and version of what made it
	Progress func(done, total int)
}

// blobSize is about how many bytes of blocks stand in one element of the page.
const blobSize = 3 << 20

// WritePage writes the page with all its data. It needs nothing but a browser.
func (d *Data) WritePage(w io.Writer, o Options) error {
	before, after, ok := bytes.Cut(asset, dataMark)
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
	fmt.Fprintf(out, "<script type=\"application/octet-stream\" id=\"head\">%s</script>\n", base64.StdEncoding.EncodeToString(packed))
	if _, err := out.Write(after); err != nil {
		return err
	}
	return out.Flush()
}

// pageSink puts blocks into elements. In each, a block begins at a multiple of three bytes, so that the page can cut
// it out of the text.
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
	_, err := fmt.Fprintf(s.w, "<script type=\"application/octet-stream\" id=\"b%d\">%s</script>\n", s.blobs, base64.StdEncoding.EncodeToString(s.blob))
	s.blob = s.blob[:0]
	s.blobs++
	return err
}
