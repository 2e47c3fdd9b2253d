// SPDX-License-Identifier: Apache-2.0

package cube

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// tarOf puts members into a tar file as profiles have it.
func tarOf(t testing.TB, members ...any) []byte {
	t.Helper()
	var m memory
	w := newTarWriter(&m)
	for i := 0; i < len(members); i += 2 {
		check(t, w.begin(members[i].(string)))
		switch content := members[i+1].(type) {
		case string:
			_, err := w.Write([]byte(content))
			check(t, err)
		case []byte:
			_, err := w.Write(content)
			check(t, err)
		}
		check(t, w.end('\n'))
	}
	check(t, w.finish())
	return m.data
}

// parts are the members of a profile.
func parts(t testing.TB, path string) (list []any) {
	t.Helper()
	p := open(t, path)
	for _, f := range p.Files() {
		b, err := p.ReadFile(f.Name)
		check(t, err)
		list = append(list, f.Name, b)
	}
	return list
}

// readAll opens a profile and reads all of it.
func readAll(b []byte) error {
	p, err := inMemory(b)
	if err != nil {
		return err
	}
	var row Row
	for m := range p.Metrics {
		for c := range p.Cnodes {
			if _, err := p.Row(MetricID(m), CnodeID(c), &row); err != nil && !p.Metrics[m].Kind.Derived() {
				return err
			}
		}
	}
	return nil
}

// Damage is named with the member that it is in. Reference readers take most of this for zeros, or crash.
func TestDamagedMembersAreRefused(t *testing.T) {
	flip := func(at int, to ...byte) func([]byte) []byte {
		return func(b []byte) []byte { copy(b[at:], to); return b }
	}
	cut := func(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:len(b)-n] } }
	cases := []struct {
		profile, member string
		change          func([]byte) []byte
		cause           error
		want            string
	}{
		{"minimal", "0.index", flip(0, 'X'), ErrCorrupt,
			"0.index: malformed profile: an index begins with CUBEX.INDEX"},
		{"minimal", "0.index", flip(11, 2), ErrCorrupt, "mark of byte order"},
		{"minimal", "0.index", flip(15, 1), ErrNotSupported, "version 1"},
		{"minimal", "0.index", flip(17, 2), ErrCorrupt, "format 2"},
		{"minimal", "0.index", flip(17, 0), ErrCorrupt, "format 0"},
		{"minimal", "0.index", flip(17, 3), ErrCorrupt, "a dense index has 18 bytes"},
		{"minimal", "0.index", flip(18, 3), ErrCorrupt, "says 3 rows"},
		{"minimal", "0.index", flip(18, 1), ErrCorrupt, "says 1 rows"},
		{"minimal", "0.index", flip(18, 255, 255, 255, 255), ErrCorrupt, "says 4294967295 rows"},
		{"minimal", "0.index", flip(26, 0), ErrCorrupt, "row number 0 at place 1: they ascend"},
		{"minimal", "0.index", flip(26, 2), ErrCorrupt, "row number 2 at place 1: they ascend and are less than 2"},
		{"minimal", "0.index", cut(1), ErrCorrupt, "has 7 bytes of row numbers"},
		{"minimal", "0.index", cut(13), ErrTruncated, "an index of 17 bytes"},
		{"minimal", "0.index", cut(9), ErrTruncated, "without its number of rows"},
		{"minimal", "0.data", flip(0, 'X'), ErrCorrupt, "0.data: malformed profile: values begin with CUBEX.DATA"},
		{"minimal", "0.data", cut(1), ErrTruncated, "2 rows of 16 bytes should be there, and 31 bytes are"},
		{"minimal", "0.data", cut(33), ErrTruncated, "9 bytes of values"},
		{"nccl-2x2-dense", "0.data", cut(1), ErrTruncated, "11 rows"},
		{"nccl-2x2-zdata", "0.data", flip(11, 11), ErrCorrupt, "the index has 10 rows, the compressed values have 11"},
		{"nccl-2x2-zdata", "0.data", flip(18, 1), ErrTruncated, "there is room for"},
		{"nccl-2x2-zdata", "0.data", flip(19, 1), ErrCorrupt, "compressed row 0: values at 1"},
		{"nccl-2x2-zdata", "0.data", flip(35, 255, 255), ErrCorrupt, "compressed row 0: values at 0, bytes 65535"},
		{"nccl-2x2-zdata", "0.data", flip(19+240, 0), ErrCorrupt, "compressed row 0: zlib"},
		{"nccl-2x2-zdata", "0.data", flip(19+240+17, 9), ErrCorrupt, "compressed row 0 has more than its 96 bytes"},
		{"nccl-2x2-zdata", "0.data", cut(1), ErrCorrupt, "compressed row 9"},
		{"nccl-2x2-zdata", "0.data", cut(400), ErrTruncated, "a table of 10"},
	}
	for _, c := range cases {
		list := parts(t, "testdata/"+c.profile+".cubex")
		for i := 0; i < len(list); i += 2 {
			if list[i] == c.member {
				list[i+1] = c.change(list[i+1].([]byte))
			}
		}
		wrong(t, readAll(tarOf(t, list...)), c.cause, c.want)
	}
	list := parts(t, "testdata/minimal.cubex")
	check(t, readAll(tarOf(t, list...)))
	wrong(t, readAll(tarOf(t, list[2:]...)), ErrCorrupt,
		`0.data: malformed profile: values of metric "visits" without .index or the other way round`)
	check(t, readAll(tarOf(t, list[4:]...))) // a metric with neither has no values
}

func wrong(t *testing.T, err, cause error, want string) {
	t.Helper()
	var format *FormatError
	testkit.Check(t, errors.Is(err, cause) && errors.As(err, &format) && strings.Contains(err.Error(), want),
		"%v, want %q", err, want)
}

// A later member of a name counts, and the tail of a dense member may be missing.
func TestWhatReadersTakeIsTaken(t *testing.T) {
	list := parts(t, "testdata/minimal.cubex")
	zeros := bytes.Clone(list[1].([]byte))
	clear(zeros[10:])
	p, err := inMemory(tarOf(t, append([]any{"0.data", zeros}, list...)...))
	check(t, err)
	var row Row
	_, err = p.Row(0, 0, &row)
	check(t, err)
	testkit.Equal(t, row.At(0).Bits(), 1, "%v: the earlier member was read", row.At(0))
	index := binary.LittleEndian.AppendUint32([]byte(indexMarker), 1)
	list[1], list[3] = list[1].([]byte)[:26], append(index, 0, 0, formatDense)
	p, err = inMemory(tarOf(t, list...))
	check(t, err)
	for c, want := range []bool{true, false} {
		stored, err := p.Row(0, CnodeID(c), &row)
		testkit.Check(t, stored == want && err == nil, "row of cnode %d: %v, %v", c, stored, err)
	}
	testkit.Equal(t, row.At(0).Bits(), 0, "%v where no row is", row.At(0))
}

func TestDamagedContainersAreRefused(t *testing.T) {
	whole := readFile(t, "testdata/minimal.cubex")
	check(t, readAll(whole))
	// rechecked puts a right checksum to a changed header.
	rechecked := func(b []byte) []byte {
		copy(b[148:], fmt.Sprintf("%06o\x00 ", tarSum(b[:512])))
		return b
	}
	large := bytes.Repeat([]byte{'x'}, 512)
	standard := append(rechecked(append(tarHeader("big", 512), large...)), whole...)
	cases := []struct {
		name  string
		b     []byte
		cause error
		want  string
	}{
		{"empty", nil, ErrCorrupt, "there is no anchor.xml"},
		{"text", []byte("<cube>"), ErrTruncated, "a tar header of 6 bytes"},
		{"magic", replaced(whole, 257, "posix"), ErrCorrupt,
			"byte 0: malformed profile: no tar header of the format ustar"},
		{"name of a member", replaced(whole, 0, "1"), ErrCorrupt,
			`0.data: malformed profile: values of metric "visits" without .index or the other way round`},
		{"size", rechecked(replaced(whole, 124, "9")), ErrCorrupt, "is not octal"},
		{"binary size", rechecked(replaced(whole, 124, "\x80")), ErrCorrupt, "is not octal"},
		{"large size", rechecked(replaced(whole, 124, "77777777777")), ErrTruncated,
			"member 0.data of 8589934591 bytes begins at byte 512"},
		{"folder", rechecked(replaced(whole, 156, "5")), ErrNotSupported, `is of type '5'`},
		{"name", rechecked(replaced(whole, 0, "./0.data")), ErrCorrupt, "0.data: malformed profile: values"},
		{"multiple of 512 as tar pads it", standard, ErrCorrupt,
			"member big has 512 bytes, a multiple of 512, and no block of zeros"},
		{"extended header", append(rechecked(paxHeader("20 atime=123.456789\n")), whole...), ErrNotSupported,
			"an extended tar header"},
	}
	for n := 1; n < 4*1024+512+1749; n += 97 { // up to the end of the last member
		cases = append(cases, struct {
			name  string
			b     []byte
			cause error
			want  string
		}{fmt.Sprintf("cut at %d", n), whole[:n], nil, ""})
	}
	for _, c := range cases {
		err := readAll(c.b)
		var format *FormatError
		testkit.Check(t, errors.As(err, &format) && (c.cause == nil || errors.Is(err, c.cause)) &&
			strings.Contains(err.Error(), c.want), "%s: %v, want %q", c.name, err, c.want)
	}
	extra := append(append(tarHeader("big", 512), large...), make([]byte, 512)...)
	check(t, readAll(append(extra, whole...)))
	check(t, readAll(append(rechecked(paxHeader("11 size=42\n")), whole...))) // as large members have it
}

func replaced(b []byte, at int, text string) []byte {
	b = bytes.Clone(b)
	copy(b[at:], text)
	return b
}

func paxHeader(record string) []byte {
	h := tarHeader("pax", int64(len(record)))
	h[156] = 'x'
	return append(h, append([]byte(record), make([]byte, 512-len(record))...)...)
}

// What the reference parser refuses is refused, with the line.
func TestDamagedAnchorsAreRefused(t *testing.T) {
	list := parts(t, "testdata/nccl-2x2.cubex")
	anchor := string(list[len(list)-1].([]byte))
	cases := []struct{ old, new, want string }{
		{`<?xml version="1.0"`, `<?xml version="1.1"`, `an anchor begins with <?xml version="1.0"`},
		{`UTF-8`, `utf-8`, `an anchor begins with`},
		{`<?xml`, "\ufeff<?xml", `an anchor begins with`},
		{"<doc>\n", "<doc>\r\n", "line 9: malformed profile: a carriage return"},
		{`</cube>`, ``, "the end is missing behind <cube>"},
		{`<doc>`, `<!-- c --><doc>`, `"<!-- c --><doc>" is no tag`},
		{`<doc>`, `<nonsense></nonsense><doc>`, "<nonsense> is not expected here"},
		{`version="4.7">`, `version="4.6">`, `version "4.6" of the format: known are 4.0`},
		{`version="4.7">`, `version="5.0">`, `version "5.0"`},
		{`version="4.7">`, `>`, "<cube> has no attribute version"},
		{`<metric id="0" type`, `<metric id="0" color="red" type`,
			"attribute color of <metric> is unknown or there twice"},
		{`<metric id="0"`, `<metric id='0'`, "is no tag"},
		{`<metric id="0"`, `<metric id=zero`, "attribute id of <metric> is not in double quotes"},
		{`<metric id="0"`, `<metric id="-1"`, `id is "-1": a number from 0 on`},
		{`<metric id="1"`, `<metric id="0"`, "<metric>: malformed profile: id 0 is there twice"},
		{`<metric id="0" type="EXCLUSIVE"`, `<metric id="0" type="OWN"`,
			`type "OWN" is unknown: readers would take it for EXCLUSIVE`},
		{`<dtype>UINT64</dtype>`, `<dtype>uint64</dtype>`, `values of metric "visits" are of type "uint64"`},
		{`<uom>occ</uom>`, `<uom>occ</uom><uom>occ</uom>`, "<uom> is not expected here, in <metric>"},
		{`<uom>occ</uom>`, `<uom>o<c</uom>`, `"<c</uom>" is no tag`},
		{`<uom>occ</uom>`, `occ`, `text "occ" in <metric>, which has none`},
		{`<uom>occ</uom>`, `<uom>occ</uon>`, "</uon> ends <uom>"},
		{`<uom>occ</uom>`, `<uom/>`, "<uom/>: readers want an end tag"},
		{`<uom>occ</uom>`, `<uom><![CDATA[occ</uom>`, "without its end"},
		{`<region id="1"`, `<region id="0"`, "region id 0 is there twice"},
		{`<region id="10"`, `<region id="11"`, "id 11 among 11 regions: ids have no gaps"},
		{`<region id="1"`, `<region`, "<region> has no attribute id"},
		{`<cnode id="10"`, `<cnode id="11"`, "id 11 among 11 cnodes: ids have no gaps"},
		{`<cnode id="1" calleeId="7">`, `<cnode id="1" calleeId="11">`, "it calls region 11 of 11"},
		{`<cnode id="1" calleeId="7">`, `<cnode id="1">`, "<cnode> has no attribute calleeId"},
		{"<cnode id=\"1\" calleeId=\"7\">\n</cnode>", `<cnode id="1" calleeId="7"/>`,
			"<cnode/>: readers want an end tag"},
		{`partype="numeric"`, `partype="number"`, `partype "number" is neither`},
		{`<rank>0</rank>`, `<rank>-1</rank>`, `rank is "-1"`},
		{"<rank>0</rank>\n", ``, "<locationgroup> has no <rank>"},
		{`<type>process</type>`, `<type>proc</type>`, `type "proc" is none of process, metrics, accelerator`},
		{`<type>accelerator stream</type>`, `<type>stream</type>`, `type "stream" is none of thread`},
		{`<location Id="11">`, `<location Id="12">`, "id 12 among 12 locations: ids have no gaps"},
		{`<location Id="11">`, `<location Id="10">`, "location id 10 is there twice"},
		{"<rank>0</rank>\n<type>process</type>", "<type>process</type>\n<rank>0</rank>", "<rank> is not expected here"},
		{`<topologies>`, `<topologies></topologies><topologies>`, "<topologies> is not expected here"},
		{`ndims="1"`, `ndims="2"`, `ndims is "2", there are 1 dimensions`},
		{`periodic="true"`, `periodic="yes"`, `periodic is "yes"`},
		{`<coord locId="9">3</coord>`, `<coord locId="9">4</coord>`,
			"coordinate 4 of locId 9 is outside of dimension 0 of size 4"},
		{`<coord locId="9">3</coord>`, `<coord locId="12">3</coord>`, "there is no locId 12"},
		{`<coord locId="9">3</coord>`, `<coord>3</coord>`, "it is of one thing, not of 0"},
		{`<coord locId="9">3</coord>`, `<coord locId="9">3 1</coord>`, "2 coordinates in 1 dimensions"},
		{`<coord locId="9">3</coord>`, `<coord locId="9">x</coord>`, `a coordinate is "x"`},
		{`</cube>`, "<severity><matrix></matrix></severity></cube>", "<matrix> is not expected here"},
		{`<systemtreenode Id="0">`, `<machine Id="0"><name>m</name></machine><systemtreenode Id="0">`,
			"<machine> has no <node>"},
	}
	for _, c := range cases {
		testkit.Require(t, strings.Contains(anchor, c.old), "the anchor has no %s", c.old)
		list[len(list)-1] = strings.Replace(anchor, c.old, c.new, 1)
		err := readAll(tarOf(t, list...))
		var format *FormatError
		testkit.Check(t, errors.As(err, &format) && strings.Contains(err.Error(), c.want),
			"%s → %s: %v, want %q", c.old, c.new, err, c.want)
	}
	for _, c := range []struct{ name, element string }{{"metric", "metrics"}, {"region", "program"},
		{"systemtreenode", "system"}} {
		from, to := strings.Index(anchor, "<"+c.element), strings.Index(anchor, "</"+c.element+">")
		list[len(list)-1] = anchor[:from] + "<" + c.element + ">" + anchor[to:]
		wrong(t, readAll(tarOf(t, list...)), ErrCorrupt, "<"+c.element+"> has no <"+c.name+">")
	}
	for n := 0; n < len(anchor)-len("</cube>\n"); n += 61 {
		list[len(list)-1] = anchor[:n]
		testkit.Require(t, readAll(tarOf(t, list...)) != nil, "an anchor cut at %d was read", n)
	}
}

// What the reference parser takes is taken: other spellings, and texts as they stand.
func TestAnchorsAsOthersWriteThem(t *testing.T) {
	list := parts(t, "testdata/minimal.cubex")
	anchor := string(list[len(list)-1].([]byte))
	change := func(old, to string) {
		t.Helper()
		testkit.Require(t, strings.Contains(anchor, old), "the anchor has no %s", old)
		anchor = strings.Replace(anchor, old, to, 1)
	}
	change("<descr>Number of visits</descr>", "<descr> a\n\n\nb &amp;lt; & > &#65; <![CDATA[<x> &amp;]]> </descr>")
	change("<doc>\n<mirrors>\n</mirrors>\n</doc>\n", "")
	change(`<location Id="1">`, "<location\n\tid=\"1\" >")
	change(`<type>thread</type>`, `<type>gpu</type>`)
	change(`mod="main.c" begin="1"`, "begin=\"1\" mod=\"ma\nin.c\"")
	change("<topologies>\n</topologies>\n", "")
	change(`type="INCLUSIVE"`, `type="DERIVED"`)
	change("<descr>Total CPU allocation time</descr>",
		"<descr></descr><cubeplaggr cubeplaggrtype=plus>a</cubeplaggr><cubeplaggr "+
			"cubeplaggrtype=\"minus\">b</cubeplaggr><cubepl rowwise=false>c</cubepl>")
	list[len(list)-1] = anchor + "anything"
	p, err := inMemory(tarOf(t, list...))
	check(t, err)
	got, want := p.Metrics[0].Description, " a b &lt; & > &#65; <x> &amp; "
	testkit.Check(t, got == want, "text %q, want %q", got, want)
	testkit.Check(t, p.Locations[0].Type == LocationStream && p.Regions[0].Module == "ma in.c", "%v, %q",
		p.Locations[0].Type, p.Regions[0].Module)
	m := p.Metrics[1]
	testkit.Check(t, m.Kind == PostDerived && m.Plus == "a" && m.Minus == "b" && m.Expression == "c", "metric %+v", m)
}
