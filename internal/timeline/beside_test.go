// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// A page of two runs has both pages whole, in attributes, and names as text.
func TestBesideHasBothPages(t *testing.T) {
	d := testkit.Value(Read(lateJob(t), nil))(t)
	defer d.Close()
	var alone, both bytes.Buffer
	a := ComparedRun{d, Options{Title: `A <b>"x"&`}}
	testkit.Must(t, d.WritePage(&alone, a.Options))
	testkit.Must(t, WriteBeside(&both, [2]ComparedRun{a, {d, Options{Title: "B"}}}, `1 < 2 & "3"`))
	frames := regexp.MustCompile(`<iframe title="([^"]*)" srcdoc="([^"]*)"></iframe>`).FindAllStringSubmatch(
		both.String(), -1)
	testkit.Require(t, len(frames) == 2 && html.UnescapeString(frames[0][1]) == a.Title, "%d frames", len(frames))
	got := html.UnescapeString(frames[0][2])
	testkit.Check(t, got == alone.String(), "a page of %d bytes is %d in its frame", alone.Len(), len(got))
	s := both.String()
	testkit.Check(t, !strings.Contains(s, "<b>") &&
		strings.Contains(s, "<pre tabindex=\"0\">1 &lt; 2 &amp; &#34;3&#34;</pre>"), "names or text got in as markup")
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`)
	program := regexp.MustCompile(`script-src ('sha256-[^']*')`).FindSubmatch(policy.FindSubmatch(asset)[1])
	if around := policy.FindSubmatch(besideAsset); around == nil || !bytes.Contains(around[1], program[1]) ||
		bytes.Contains(around[1], []byte("unsafe")) {
		t.Errorf("the policy around does not know the page's program, or allows too much: %s", around[1])
	}
}
