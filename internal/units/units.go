// SPDX-License-Identifier: Apache-2.0

// Package units writes numbers as people read them: bytes, times, shares, counts of things, ranks and lists of them.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unknown stands in tables where a number is not known.
const Unknown = "n/a"

// Plain writes a value as CSV has it: numbers without units, what is not known as nothing.
func Plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *uint64:
		if v == nil {
			return ""
		}
		return strconv.FormatUint(*v, 10)
	}
	return fmt.Sprint(v)
}

// Bytes writes a size in binary units, exact ones without decimals: "512 B", "4 MiB".
func Bytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return Number(v, i == 0) + " " + units[i]
}

// Time writes nanoseconds in the unit that suits them: "820 ns", "12.5 µs", "3.2 s".
func Time(ns float64) string {
	units := []string{"ns", "µs", "ms", "s"}
	v, i := ns, 0
	for v >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	return Number(v, i == 0) + " " + units[i]
}

// Duration writes nanoseconds with all that is known of them, as [time.Duration] does, which has no room for 2^63 of
// them and more; these are written as Time does.
func Duration(ns uint64, round time.Duration) string {
	if ns > math.MaxInt64 {
		return Time(float64(ns))
	}
	return time.Duration(ns).Round(round).String()
}

// Number writes three significant digits, none of them after a point if the number is whole.
func Number(v float64, whole bool) string {
	switch {
	case whole || v == float64(int64(v)) || v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Percent is a share with its sign; "–" of nothing.
func Percent(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*part/whole)
}

// Count is a number with its noun, in the form for one or for many.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Plural is a number with a regular noun: "1 operation", "2 operations", "3 processes".
func Plural(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	ending := "s"
	if strings.HasSuffix(noun, "s") {
		ending = "es"
	}
	return fmt.Sprintf("%d %s%s", n, noun, ending)
}

// OrDash is a text, or a dash in place of an empty one.
func OrDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
