// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// TestDescriptorsAreWrittenAsTheyAreRead: each member of each type's descriptor comes back.
func TestDescriptorsAreWrittenAsTheyAreRead(t *testing.T) {
	for i := range descriptor.TypeOther + 1 {
		d := reflect.New(reflect.TypeOf(descriptor.New(i)))
		for k := range d.Elem().NumField() {
			switch f := d.Elem().Field(k); f.Kind() {
			case reflect.String:
				f.SetString("text")
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Int, reflect.Int64:
				f.SetInt(int64(k + 1))
			case reflect.Pointer:
			default:
				f.SetUint(uint64(k + 1))
			}
		}
		text := testkit.Value(marshalDescr(d.Interface()))(t)
		again := reflect.New(d.Elem().Type())
		err := json.Unmarshal(text, again.Interface())
		testkit.Require(t, err == nil, "%s: %v", i, err)
		if !reflect.DeepEqual(d.Interface(), again.Interface()) {
			t.Errorf("%s: %+v became %+v by %s", i, d.Elem(), again.Elem(), text)
		}
		typ, ok := typeOf(d.Interface())
		testkit.Check(t, ok && typ == i, "%s is taken for %s", i, typ)
	}
	_, err := marshalDescr(5)
	testkit.Check(t, err != nil, "5 is a descriptor")
}
