// SPDX-License-Identifier: Apache-2.0

package descriptor

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Pointer is an address or another opaque 64-bit number, written in hex in the recordings; 0 is NULL.
type Pointer uint64

// UnmarshalJSON accepts "0x…" and null.
func (p *Pointer) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*p = 0
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return fmt.Errorf("%q is not a pointer", s)
	}
	*p = Pointer(v)
	return nil
}

// MarshalJSON writes "0x…", or null for 0.
func (p Pointer) MarshalJSON() ([]byte, error) {
	if p == 0 {
		return []byte("null"), nil
	}
	return fmt.Appendf(nil, `"0x%x"`, uint64(p)), nil
}

// Flag is a C bool or int used as one, written as 0 or 1.
type Flag bool

// UnmarshalJSON accepts numbers and JSON booleans.
func (f *Flag) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "0", "false":
		*f = false
	case "1", "true":
		*f = true
	default:
		return fmt.Errorf("%s is not a flag", text)
	}
	return nil
}

// MarshalJSON writes 0 or 1.
func (f Flag) MarshalJSON() ([]byte, error) {
	if f {
		return []byte("1"), nil
	}
	return []byte("0"), nil
}
