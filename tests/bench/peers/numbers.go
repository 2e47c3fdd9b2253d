// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// numbers is a flag: numbers of ranks, one after the other.
type numbers []int

var errNumbers = errors.New("numbers from 1 on wanted, with commas")

// String implements flag.Value.
func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return errNumbers
		}
		*n = append(*n, v)
	}
	return nil
}
