// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
)

// pageSeries is a number of things in blocks of a page that follow each other.
type pageSeries struct {
	Block  int
	Starts []float64
}

// pagePath is what a page's head says of the critical path.
type pagePath struct {
	pageSeries
	What []struct{ Activity string }
}

// pageBlocks reads blocks of a page, as internal/timeline/format.go describes them.
type pageBlocks struct {
	page   []byte
	places [][3]int // by block: element, first byte, number of bytes
}

var pageElement = `<script type="application/octet-stream" id="b%d">([^<]*)</script>`

// columns gives the numbers of the first columns of a block.
func (p *pageBlocks) columns(block, n int) ([][]uint64, error) {
	at := p.places[block]
	m := regexp.MustCompile(fmt.Sprintf(pageElement, at[0])).FindSubmatch(p.page)
	if m == nil {
		return nil, fmt.Errorf("the page has no element %d", at[0])
	}
	element, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(element[at[1] : at[1]+at[2]])))
	if err != nil {
		return nil, err
	}
	all := make([][]uint64, n)
	for i := range all {
		size, read := binary.Uvarint(raw)
		column := raw[read : read+int(size)]
		raw = raw[read+int(size):]
		for len(column) > 0 {
			v, read := binary.Uvarint(column)
			all[i] = append(all[i], v)
			column = column[read:]
		}
	}
	return all, nil
}

// path notes what the critical path that a page draws is made of.
func (p *pageBlocks) path(f figures, name string, path *pagePath) error {
	activities := make(map[string]float64)
	for k := range path.Starts {
		c, err := p.columns(path.Block+k, 3)
		if err != nil {
			return err
		}
		for i, length := range c[0] {
			activities[path.What[c[2][i]].Activity] += float64(length)
		}
	}
	for activity, ns := range activities {
		switch activity {
		case "start-up", "unknown", "after the last operation":
		default:
			f.add(name, "critical path: "+activity, ns)
			f.add(name, "critical path", ns)
		}
	}
	return nil
}

// waits notes what a page has waits in the order of time of.
func (p *pageBlocks) waits(f figures, name string, waits *pageSeries, ranks func(at int) string,
	of func(comm, function uint64) string) error {
	f.add(name+", waits in time", "waited", 0)
	for k := range waits.Starts {
		c, err := p.columns(waits.Block+k, 7)
		if err != nil {
			return err
		}
		for i, length := range c[1] {
			if startUp := c[4][i] == 1; startUp {
				continue
			}
			f.add(name+", waits in time", "waited", float64(length))
			f.add(name+", waits in time", ranks(int(c[2][i])-1)+": waited", float64(length))
			f.add(name+", waits in time", ranks(int(c[3][i])-1)+": caused", float64(length))
			f.add(name+", waits in time", of(c[5][i], c[6][i])+": waited", float64(length))
			f.add(name+", waits in time", of(c[5][i], c[6][i])+": waits", 1)
		}
	}
	return nil
}
