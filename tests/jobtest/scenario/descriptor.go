// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/nccl-otf2/nccl-otf2/internal/replay/descriptor"
	"github.com/nccl-otf2/nccl-otf2/plugin/api"
)

// typeOf is the event type that a descriptor, or a pointer to one, is of; false if it is none.
func typeOf(descr any) (descriptor.Type, bool) {
	t := reflect.TypeOf(descr)
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for typ := range descriptor.TypeOther + 1 {
		if t == reflect.TypeOf(descriptor.New(typ)) {
			return typ, true
		}
	}
	return 0, false
}

// marshalDescr writes a descriptor as the member "d" of a start line, without the ids of other
// events. A string "" is NULL, but for the protocol of a symmetric collective, which NCCL leaves empty.
func marshalDescr(descr any) ([]byte, error) {
	t, ok := typeOf(descr)
	if !ok {
		return nil, fmt.Errorf("%T is not a descriptor", descr)
	}
	plain, err := json.Marshal(descr)
	if err != nil {
		return nil, err
	}
	values := map[string]json.RawMessage{}
	if err := json.Unmarshal(plain, &values); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(`{"_":0`)
	if int(t) < len(api.Events) {
		for _, m := range api.Events[t].Members {
			writeMember(&out, m, values)
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// writeMember adds one member of a descriptor, if it has a value.
func writeMember(out *bytes.Buffer, m api.Member, values map[string]json.RawMessage) {
	v, ok := values[m.Name]
	switch {
	case !ok:
		return
	case string(v) == `""` && !(m.Name == "proto" && string(values["isSymColl"]) == "1"):
		v = json.RawMessage("null")
	}
	fmt.Fprintf(out, ",%q:%s", m.Name, v)
	if m.Kind != api.NetData {
		return
	}
	for _, content := range []string{"sock", "ib"} {
		if v, ok := values[content]; ok {
			fmt.Fprintf(out, ",%q:%s", content, v)
		}
	}
}
