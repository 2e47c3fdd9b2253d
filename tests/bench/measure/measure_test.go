// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSplice(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const other = "<!-- other:begin -->\nstays\n<!-- other:end -->\n"
	write("a\n" + other + "<!-- table:begin -->\nold\n<!-- table:end -->\nb\n")
	got, err := Splice(page, "table", "new\n")
	if want := "a\n" + other + "<!-- table:begin -->\nnew\n<!-- table:end -->\nb\n"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	write("a\n<!-- table:end -->\n<!-- table:begin -->\n")
	if _, err := Splice(page, "table", "new"); err == nil {
		t.Error("a page with markers in the wrong order was accepted")
	}
}

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 9.994: "9.99", 12.34: "12.3", 123.4: "123", -45.67: "-45.7", 1e6: "1000000"} {
		if got := Digits(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
