// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestDescriptorsAreWrittenAsTheyAreRead: each member of each type's descriptor comes back.
func TestDescriptorsAreWrittenAsTheyAreRead(t *testing.T) {
	for i, info := range eventTypes {
		d := reflect.New(reflect.TypeOf(info.descr))
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
		text, err := MarshalDescr(d.Interface())
		if err != nil {
			t.Fatal(err)
		}
		again := reflect.New(d.Elem().Type())
		if err := json.Unmarshal(text, again.Interface()); err != nil {
			t.Fatalf("%s: %v", info.name, err)
		}
		if !reflect.DeepEqual(d.Interface(), again.Interface()) {
			t.Errorf("%s: %+v became %+v by %s", info.name, d.Elem(), again.Elem(), text)
		}
		if typ, ok := TypeOf(d.Interface()); !ok || typ != EventType(i) {
			t.Errorf("%s is taken for %s", info.name, typ)
		}
	}
	if _, err := MarshalDescr(5); err == nil {
		t.Error("5 is a descriptor")
	}
}
