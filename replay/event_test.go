// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestTheHostHasTheSameFields: programs name fields by their order alone, so this side's table and
// that of the host must agree.
func TestTheHostHasTheSameFields(t *testing.T) {
	text, err := os.ReadFile("../tests/fakenccl/events.h")
	if err != nil {
		t.Fatal(err)
	}
	names, kinds := map[string][]string{}, map[string]string{}
	for _, m := range regexp.MustCompile(`X\((\w+), (\w+), (\w+)\)`).FindAllStringSubmatch(string(text), -1) {
		typ := strings.ToLower(strings.ReplaceAll(m[1], "_", ""))
		names[typ] = append(names[typ], m[2])
		kinds[typ+"."+m[2]] = m[3]
	}
	for i, info := range eventTypes {
		if EventType(i) == TypeOther { // whose one field Compile writes itself
			continue
		}
		typ := strings.ToLower(info.name)
		var want []string
		for _, f := range info.fields {
			want = append(want, f.name)
			text := map[string]bool{"STRING": true, "FUNC": true, "DATATYPE": true, "ALGO": true, "PROTO": true}[kinds[typ+"."+f.name]]
			if text != (f.kind == fieldString) {
				t.Errorf("%s.%s is a string on one side only", info.name, f.name)
			}
		}
		if !reflect.DeepEqual(names[typ], want) {
			t.Errorf("%s: the host has %v, this package %v", info.name, names[typ], want)
		}
	}
}

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
