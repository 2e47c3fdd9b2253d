// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// What other writers leave in and behind the container is no reason to refuse a profile: the reference reader does not
// look at it.
func TestContainersOfOtherWriters(t *testing.T) {
	whole := readFile(t, "testdata/minimal.cubex")
	headers := func(change func(h []byte)) []byte {
		b := bytes.Clone(whole)
		p, err := inMemory(b)
		check(t, err)
		for _, m := range p.members {
			change(b[m.at-tarBlock : m.at])
		}
		return b
	}
	field := func(f tarField, text string) func(h []byte) {
		return func(h []byte) {
			clear(f.bytesIn(h))
			copy(f.bytesIn(h), text)
		}
	}
	sum := tarFields.checksum
	size := func(format string) func(h []byte) {
		return func(h []byte) {
			n, err := tarNumber(tarFields.size.bytesIn(h))
			check(t, err)
			field(tarFields.size, fmt.Sprintf(format, n))(h)
		}
	}
	end := bytes.TrimRight(whole, "\x00")
	// the last member's block is whole
	end = append(bytes.Clone(end), make([]byte, (tarBlock-len(end)%tarBlock)%tarBlock)...)
	cases := map[string][]byte{
		"a sum of blanks that leaves one out": headers(
			func(h []byte) { field(sum, fmt.Sprintf("%06o\x00 ", tarSum(h)-' '))(h) }),
		"a sum without leading zeros": headers(func(h []byte) { field(sum, fmt.Sprintf("%o", tarSum(h)))(h) }),
		"a sum behind blanks": headers(
			func(h []byte) { field(sum, fmt.Sprintf("%7o\x00", tarSum(h)))(h) }),
		"a sum of nothing":              headers(field(sum, "")),
		"a sum that is no number":       headers(field(sum, "abcdefgh")),
		"sizes behind blanks":           headers(size("%11o")),
		"sizes that end in a blank":     headers(size("%010o ")),
		"sizes of twelve digits":        headers(size("%012o")),
		"GNU's mark of the format":      headers(field(tarFields.magic, "ustar  \x00")),
		"a newline behind the end":      append(bytes.Clone(whole), '\n'),
		"a newline in place of the end": append(bytes.Clone(end), '\n'),
		"a text behind the end": append(
			bytes.Clone(whole), bytes.Repeat([]byte("behind the end "), 100)...),
	}
	for name, b := range cases {
		err := readAll(b)
		testkit.Check(t, err == nil, "%s: %v", name, err)
	}
}

// The system tree of CUBE 4.0 has machines, nodes, processes and threads.
func TestSystemTreeOfMachines(t *testing.T) {
	list := parts(t, "testdata/minimal.cubex")
	anchor := string(list[len(list)-1].([]byte))
	from, to := strings.Index(anchor, "<system"), strings.Index(anchor, "</system>")
	list[len(list)-1] = anchor[:from] + `<system>
<machine Id="0"><name>cluster</name>
<node Id="0"><name>node07</name>
<process Id="0"><name>Process 0</name><rank>0</rank><thread Id="0"><name>Master thread</name><rank>0</rank></thread></process>
<process Id="1"><rank>1</rank><thread Id="1"><rank>0</rank></thread></process>
</node></machine>
<topologies><cart ndims="1"><dim size="2" periodic="false"/><coord thrdId="1">1</coord><coord procId="0">0</coord></cart></topologies>
` + anchor[to:]
	p, err := inMemory(tarOf(t, list...))
	check(t, err)
	nodes := []SystemTreeNode{{Parent: None, Name: "cluster", Class: "machine"},
		{Parent: 0, Name: "node07", Class: "node"}}
	testkit.Check(t, len(p.Nodes) == 2 && p.Nodes[0].Class == nodes[0].Class && p.Nodes[1].Name == nodes[1].Name &&
		p.Nodes[1].Class == nodes[1].Class && p.Nodes[1].Parent == 0, "nodes %+v, want %+v", p.Nodes, nodes)
	testkit.Check(t, len(p.Groups) == 2 && p.Groups[0].Name == "Process 0" && p.Groups[1].Name == "Process 1" &&
		p.Groups[1].Rank == 1 && p.Groups[1].Node == 1 && p.Groups[1].Type == GroupProcess, "groups %+v", p.Groups)
	testkit.Check(t, len(p.Locations) == 2 && p.Locations[0].Name == "Master thread" &&
		p.Locations[1].Name == "Thread 0" && p.Locations[1].Group == 1 && p.Locations[1].Type == LocationThread,
		"locations %+v", p.Locations)
	places := p.Topologies[0].Places
	testkit.Check(t, places[0].Of == PlaceOfLocation && places[0].ID == 1 && places[1].Of == PlaceOfGroup, "places %+v",
		places)
	var row Row
	_, err = p.Row(0, 0, &row)
	testkit.Check(t, err == nil && row.At(0).Bits() == 1, "%v, %v", row.At(0), err)
}

// A metric that cannot be read, as its type is none of numbers or its values are damaged, keeps no other from being
// read.
func TestOneUnreadableMetric(t *testing.T) {
	list := parts(t, "testdata/minimal.cubex")
	anchor := string(list[len(list)-1].([]byte))
	for _, dtype := range []string{"SCALE_FUNC", "uint64", "HISTOGRAM", "NDOUBLES(0)"} {
		changed := slices.Clone(list)
		changed[len(list)-1] = strings.Replace(anchor, "<dtype>UINT64</dtype>", "<dtype>"+dtype+"</dtype>", 1)
		p, err := inMemory(tarOf(t, changed...))
		check(t, err)
		onlySecondIsRead(t, dtype, p, ErrNotSupported)
	}
	changed := slices.Clone(list)
	changed[1] = changed[1].([]byte)[:20]
	p, err := inMemory(tarOf(t, changed...))
	check(t, err)
	onlySecondIsRead(t, "values cut off", p, ErrTruncated)
}

func onlySecondIsRead(t *testing.T, what string, p *Profile, cause error) {
	t.Helper()
	var row Row
	_, err := p.Row(0, 0, &row)
	testkit.Check(t, errors.Is(err, cause), "%s: the metric's row gives %v, want %v", what, err, cause)
	if stored, err := p.Row(1, 0, &row); !stored || err != nil || row.At(1).Float64() == 0 {
		t.Errorf("%s: the other metric's row is %v: %v, %v", what, stored, row.At(1), err)
	}
}
