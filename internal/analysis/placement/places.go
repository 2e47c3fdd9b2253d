// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
)

// Stride returns the distance of neighbors, 0 if it is not the same for all.
func Stride(places []int) int {
	if len(places) < 2 {
		return 0
	}
	d := places[1] - places[0]
	for i := 1; i < len(places); i++ {
		if places[i]-places[i-1] != d {
			return 0
		}
	}
	return max(d, 0)
}

// PlacesText formats a list of places: "0-7", "0-28/4" for every fourth, "0,1,5".
func PlacesText(places []int) string {
	if len(places) == 0 {
		return ""
	}
	switch d := Stride(places); {
	case len(places) > 2 && d == 1:
		return fmt.Sprintf("%d-%d", places[0], places[len(places)-1])
	case len(places) > 2 && d > 1:
		return fmt.Sprintf("%d-%d/%d", places[0], places[len(places)-1], d)
	}
	const most = 32
	var text []string
	for _, p := range places[:min(len(places), most)] {
		text = append(text, fmt.Sprint(p))
	}
	if len(places) > most {
		text = append(text, "…")
	}
	return strings.Join(text, ",")
}
