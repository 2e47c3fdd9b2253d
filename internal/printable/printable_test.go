// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		`ncclAllReduce "x" \n`:   `ncclAllReduce "x" \n`,
		"Größe 大 🙂":              "Größe 大 🙂",
		"a\x1b[31mred":           `a\x1b[31mred`,
		"a\nb\tc\r":              `a\nb\tc\r`,
		"del\x7f csi\u009b":      `del\x7f csi\u009b`,
		"rtl\u202egnp.exe\u2066": `rtl\u202egnp.exe\u2066`,
		"zero\u200bwidth\ufeff":  `zero\u200bwidth\ufeff`,
		"line\u2028end":          `line\u2028end`,
		"latin \xe4 c1 \x9b":     `latin \xe4 c1 \x9b`,
		"real \ufffd stays":      "real \ufffd stays",
		"tag \U000e0041":         `tag \U000e0041`,
	} {
		testkit.Equal(t, Name(in), want, "%q", in)
	}
}

func TestCell(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "AllReduce": "AllReduce", "-1": "-1", "-1.5e-3": "-1.5e-3", "+7": "+7", "=1+1": "'=1+1",
		"+cmd": "'+cmd", "-": "'-",
		"@SUM(A1)": "'@SUM(A1)", "-2+3": "'-2+3", "\t=1": `\t=1`, "\r=1": `\r=1`, "\n=1": `\n=1`, "a=1": "a=1",
	} {
		testkit.Equal(t, Cell(in), want, "%q", in)
	}
}

type words struct{ text string }

func (w words) String() string { return w.text }

type named string

func TestArguments(t *testing.T) {
	bad := "a\x1bb"
	var b strings.Builder
	Fprintf(&b, "%s|%v|%q|%s|%v|%d|%v|%s|%v|%v", bad, errors.New(bad), "q", Raw(bad), words{bad}, 7, time.Second,
		named(bad), []string{bad}, nil)
	want := `a\x1bb|a\x1bb|"q"|` + bad + `|a\x1bb|7|1s|a\x1bb|[a\x1bb]|<nil>`
	testkit.Equal(t, b.String(), want, "b.String()")
}

// FuzzName: what comes out can be shown, is the same a second time, and says all that went in.
func FuzzName(f *testing.F) {
	f.Add("a\x1b[0m\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Name(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(
			got, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }) {
			t.Errorf("%q gives %q", s, got)
		}
		testkit.Equal(t, Name(got), got, "%q gives %q, and that", s, got)
		c := Cell(s)
		testkit.Check(t, c == "" || !strings.ContainsRune("=@", rune(c[0])), "%q is the cell %q", s, c)
	})
}
