// SPDX-License-Identifier: Apache-2.0

// Package quantity reads metrics: in which unit are the values of a metric class, and which numbers are they?
package quantity

import (
	"cmp"
	"math"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Member is a member of a metric class. Events store its values as integers or doubles that are to be multiplied
// with a power of ten or two to have its unit.
type Member struct {
	Member                  otf2.MetricMemberRef
	Name, Description, Unit string
	Mode                    otf2.MetricMode
	Type                    otf2.Type // of stored values: uint64, int64 or double
	Factor, Divisor         float64   // of stored values, to get the unit; one of them is 1
}

// Members are the members of a metric class, or of the class of a metric instance. There are none if the archive
// does not define all of them, or defines values that are no numbers.
func Members(defs *otf2.Definitions, ref otf2.MetricRef) []Member {
	class := defs.MetricClass(ref)
	if in := defs.MetricInstance(ref); class == nil && in != nil {
		class = defs.MetricClass(in.MetricClass)
	}
	if class == nil {
		return nil
	}
	all := make([]Member, 0, len(class.Members))
	for _, m := range class.Members {
		member := defs.MetricMember(m)
		if member == nil || member.ValueType != otf2.TypeUint64 && member.ValueType != otf2.TypeInt64 &&
			member.ValueType != otf2.TypeDouble {
			return nil
		}
		all = append(all, newQuantity(defs, member))
	}
	return all
}

// maxExponent bounds the powers of ten (and of two) that units are multiplied with, so that they are numbers.
const maxExponent = 300

func newQuantity(defs *otf2.Definitions, m *otf2.MetricMember) Member {
	q := Member{
		Member: m.Self, Name: cmp.Or(defs.String(m.Name), "(no name)"), Description: defs.String(m.Description),
		Unit: defs.String(m.Unit),
		Mode: m.Mode, Type: m.ValueType, Factor: 1, Divisor: 1,
	}
	base := 10.0
	if m.Base == otf2.BaseBinary {
		base = 2
	}
	// Dividing by a power of ten is exact to the last digit, multiplying with its inverse is not.
	if power := math.Pow(base, math.Abs(float64(max(-maxExponent, min(m.Exponent, maxExponent))))); m.Exponent < 0 {
		q.Divisor = power
	} else {
		q.Factor = power
	}
	return q
}

// StoredValues appends to list the values that an event stores of quantities. ok is false if their number or types are
// not those of the quantities.
func StoredValues(list []uint64, quantities []Member, m otf2.Metric) (values []uint64, ok bool) {
	if m.Len() != len(quantities) {
		return list, false
	}
	for i := range quantities {
		typ, bits := m.At(i)
		if typ != quantities[i].Type {
			return list, false
		}
		list = append(list, bits)
	}
	return list, true
}

// Number is a stored value in the quantity's unit.
func (q *Member) Number(bits uint64) float64 {
	v := float64(bits)
	switch q.Type {
	case otf2.TypeInt64:
		v = float64(int64(bits))
	case otf2.TypeDouble:
		v = math.Float64frombits(bits)
	}
	return v * q.Factor / q.Divisor
}

// Growth is the difference of two stored values in the quantity's unit. That of integers is exact, also of large ones.
func (q *Member) Growth(from, to uint64) float64 {
	if q.Type == otf2.TypeDouble {
		return q.Number(to) - q.Number(from)
	}
	return float64(int64(to-from)) * q.Factor / q.Divisor
}
