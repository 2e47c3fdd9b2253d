// SPDX-License-Identifier: Apache-2.0

package cubeprint

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nccl-otf2/nccl-otf2/cube"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// The texts of profiles of other writers, and of one of ours with one of everything.
func TestTexts(t *testing.T) {
	for _, name := range []string{"minimal", "nccl-2x2", "cubew-sparse", "scorep-serial", "sample"} {
		p := testkit.Value(cube.Open("../testdata/" + name + ".cubex"))(t)
		var b bytes.Buffer
		testkit.Must(t, Print(&b, p, nil))
		golden.Text(t, "../testdata/"+name+".print.txt", b.String())
		err := p.Close()
		testkit.Check(t, err == nil, "%v", err)
	}
}

// The variants of a profile differ in their files only.
func TestVariantsHaveOneText(t *testing.T) {
	texts := make(map[string]string)
	for _, name := range []string{"nccl-2x2", "nccl-2x2-zdata", "nccl-2x2-bigendian"} {
		p := testkit.Value(cube.Open("../testdata/" + name + ".cubex"))(t)
		var b strings.Builder
		testkit.Must(t, Print(&b, p, nil))
		head, rest, _ := strings.Cut(b.String(), "\nfiles\n")
		_, rest, _ = strings.Cut(rest, "\nvalues ")
		texts[name] = head + rest
		b.Reset()
		testkit.Must(t, Print(&b, p, &Options{NoValues: true}))
		if text := b.String(); strings.Contains(text, "\nvalues ") || !strings.HasPrefix(text, head) {
			t.Errorf("%s: without values the text is %s", name, text)
		}
		err := p.Close()
		testkit.Check(t, err == nil, "%v", err)
	}
	for name, text := range texts {
		testkit.Equal(t, cmp.Diff(texts["nccl-2x2"], text), "", "%s", name)
	}
}

// A metric of a type that has no numbers is named as not read, one with damaged values as damaged, and all others are
// printed.
func TestUnreadableMetricsAreNamed(t *testing.T) {
	whole := testkit.Read(t, "../testdata/minimal.cubex")
	for _, c := range []struct{ old, new, want, fault string }{
		{"<dtype>UINT64</dtype>", "<dtype>UINT99</dtype>",
			"  not read: cube: 0.data: not supported: values of metric \"visits\" are of type \"UINT99\"\n", ""},
		{"CUBEX.DATA", "CUBEX.DATE", "  damaged: cube: 0.data: malformed profile: values begin with", "0.data"},
	} {
		b := bytes.Replace(whole, []byte(c.old), []byte(c.new), 1)
		p, err := cube.Read(bytes.NewReader(b), int64(len(b)))
		testkit.Must(t, err)
		var text strings.Builder
		err = Print(&text, p, nil)
		testkit.Check(t, (err == nil) == (c.fault == "") && (err == nil || strings.Contains(err.Error(), c.fault)),
			"%s: error %v", c.new, err)
		head, rest, _ := strings.Cut(text.String(), "values of visits\n")
		testkit.Check(t, head != "" && strings.HasPrefix(rest, c.want) &&
			strings.Contains(rest, "\nvalues of time\n  0 "), "%s: %s", c.new, rest)
	}
}
