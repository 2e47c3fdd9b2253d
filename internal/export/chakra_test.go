// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/selection"
	"github.com/nccl-otf2/nccl-otf2/internal/golden"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"
	"github.com/nccl-otf2/nccl-otf2/tests/jobtest/shardtest"
)

// chakraSchema is what the traces contain of Chakra's schema, for a reader that is not ours: by message, each field as
// NAME NUMBER TYPE, where a star marks lists.
var chakraSchema = map[string]string{
	"AttributeProto": "name 1 string, int32_val 7 int32, int64_val 9 int64, bool_val 27 bool, string_val 29 string",
	"GlobalMetadata": "version 1 string, attr 2 *AttributeProto",
	"Node": "id 1 uint64, name 2 string, type 3 uint32, ctrl_deps 4 *uint64, data_deps 5 *uint64, " +
		"start_time_micros 6 uint64, duration_micros 7 uint64, attr 10 *AttributeProto",
}

var chakraTypes = map[string]descriptorpb.FieldDescriptorProto_Type{
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "int32": descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"int64": descriptorpb.FieldDescriptorProto_TYPE_INT64, "bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"uint32": descriptorpb.FieldDescriptorProto_TYPE_UINT32, "uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64,
}

func chakraMessages(t *testing.T) protoreflect.MessageDescriptors {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{Name: new("et_def.proto"), Syntax: new("proto3")}
	for name, fields := range chakraSchema {
		m := &descriptorpb.DescriptorProto{Name: new(name)}
		if name == "AttributeProto" {
			m.OneofDecl = []*descriptorpb.OneofDescriptorProto{{Name: new("value")}}
		}
		for field := range strings.SplitSeq(fields, ", ") {
			f := &descriptorpb.FieldDescriptorProto{Name: new(""), Number: new(int32(0)),
				Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
			var typ string
			testkit.Value(fmt.Sscan(field, f.Name, f.Number, &typ))(t)
			typ, list := strings.CutPrefix(typ, "*")
			if list {
				f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
			if known, ok := chakraTypes[typ]; ok {
				f.Type = known.Enum()
			} else {
				f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), new("."+typ)
			}
			if strings.HasSuffix(*f.Name, "_val") {
				f.OneofIndex = new(int32(0))
			}
			m.Field = append(m.Field, f)
		}
		file.MessageType = append(file.MessageType, m)
	}
	return testkit.Value(protodesc.NewFile(file, nil))(t).Messages()
}

// chakraNode is a node of a trace.
type chakraNode struct {
	ID, Type, Start, Duration uint64
	Name                      string
	After                     []uint64
	Attributes                map[string]any
}

// readChakra reads a trace by protobuf's own library.
func readChakra(t *testing.T, path string) (metadata string, nodes []chakraNode) {
	t.Helper()
	types := chakraMessages(t)
	attributes := func(m protoreflect.Message) map[string]any {
		all := make(map[string]any)
		list := m.Get(m.Descriptor().Fields().ByName("attr")).List()
		for i := range list.Len() {
			a := list.Get(i).Message()
			of := a.WhichOneof(a.Descriptor().Oneofs().Get(0))
			all[a.Get(a.Descriptor().Fields().ByName("name")).String()] = a.Get(of).Interface()
		}
		return all
	}
	data := testkit.Read(t, path)
	for len(data) > 0 {
		message, n := protowire.ConsumeBytes(data)
		testkit.Require(t, n > 0, "%s: %v", path, protowire.ParseError(n))
		data = data[n:]
		name := protoreflect.Name("Node")
		if metadata == "" {
			name = "GlobalMetadata"
		}
		m := dynamicpb.NewMessage(types.ByName(name))
		testkit.Must(t, proto.UnmarshalOptions{}.Unmarshal(message, m))
		testkit.Check(t, len(m.GetUnknown()) == 0, "%s: unknown fields: %x", path, m.GetUnknown())
		get := func(name protoreflect.Name) protoreflect.Value { return m.Get(m.Descriptor().Fields().ByName(name)) }
		if metadata == "" {
			metadata = fmt.Sprint(get("version"), " ", attributes(m))
			continue
		}
		node := chakraNode{ID: get("id").Uint(), Type: get("type").Uint(), Name: get("name").String(),
			Start: get("start_time_micros").Uint(), Duration: get("duration_micros").Uint(), Attributes: attributes(m)}
		after := get("data_deps").List()
		for i := range after.Len() {
			node.After = append(node.After, after.Get(i).Uint())
		}
		nodes = append(nodes, node)
	}
	return metadata, nodes
}

// chakraOf exports a job and reads the traces of its ranks.
func chakraOf(t *testing.T, anchor string, of *selection.Spec) (res *Result, text string, ranks [][]chakraNode) {
	t.Helper()
	a, opts := jobtest.Open(t, anchor), &Options{Version: "test"}
	if of != nil {
		opts.Selection = testkit.Value(selection.Resolve(a, *of))(t)
	}
	res = testkit.Value(Chakra(a, t.TempDir(), opts))(t)
	var out strings.Builder
	for _, path := range res.Files {
		fmt.Fprintf(&out, "%s\n", filepath.Base(path))
		if filepath.Ext(path) == ".json" {
			out.Write(testkit.Read(t, path))
			continue
		}
		metadata, nodes := readChakra(t, path)
		fmt.Fprintln(&out, metadata)
		for _, n := range nodes {
			fmt.Fprintf(&out, "%d type %d %s after %d at %d for %d %v\n", n.ID, n.Type, n.Name, n.After, n.Start,
				n.Duration, n.Attributes)
		}
		ranks = append(ranks, nodes)
	}
	counts := testkit.Value(json.Marshal([]any{res.Records, res.LeftOut}))(t)
	return res, out.String() + string(counts) + "\n", ranks
}

// A job's traces have what Chakra's schema has, with the attributes that its feeder and ASTRA-sim read; all members
// have the same collectives.
func TestTracesOfChakra(t *testing.T) {
	_, text, ranks := chakraOf(t, makeJob(t), nil)
	golden.Text(t, "testdata/job.chakra.txt", text)
	collectives := make([][]string, len(ranks))
	for rank, nodes := range ranks {
		for _, n := range nodes {
			for _, id := range n.After {
				testkit.Check(t, id < n.ID, "rank %d: node %d waits for node %d", rank, n.ID, id)
			}
			if n.Type == collNode {
				collectives[rank] = append(collectives[rank], fmt.Sprint(n.Name, n.Attributes["comm_type"]))
			}
		}
		testkit.Same(t, collectives[rank], collectives[0])
	}
	testkit.Equal(t, len(collectives[0]), 7, "collectives")
}

// The work between operations is that of the rank: the late one has the time by which it is late, in each step.
func TestTracesOfChakraHaveTheWorkOfRanks(t *testing.T) {
	dir := t.TempDir()
	jobtest.WriteTraining(t, dir, jobtest.PerHost, 5)
	_, _, ranks := chakraOf(t, jobtest.Unify(t, dir), nil)
	worked := make([]uint64, len(ranks))
	for rank, nodes := range ranks {
		for _, n := range nodes {
			if n.Type == compNode {
				worked[rank] += n.Duration
			}
		}
	}
	for rank, w := range worked {
		if rank != 5 {
			more := int64(worked[5]) - int64(w)
			testkit.Check(t, more > 38_000 && more <= 40_000, "rank 5 worked %d µs longer than rank %d", more, rank)
		}
	}
}

// What a member has not ended, or of which the size is unknown, is left out of all members' traces, because whoever
// plays them would wait forever; without any operation there is nothing to play.
func TestTracesOfChakraCanBePlayed(t *testing.T) {
	make := func(operations func(r int) int, elements uint64) string {
		return jobtest.Make(t, 3, 3, func(r int, p *shardtest.Process) {
			world := p.World()
			for i := range uint64(operations(r)) {
				p.AllReduce(world, t0+(100+i*50)*us, t0+(145+i*50)*us, elements)
			}
		})
	}
	res, _, ranks := chakraOf(t, make(func(r int) int { return 4 - r/2 }, 10), nil)
	for rank, nodes := range ranks {
		testkit.Equal(t, len(nodes), 5, "nodes of rank %d", rank)
	}
	testkit.Same(t, res.LeftOut, map[string]uint64{"operations that ranks recorded differently": 2})
	dir := t.TempDir() // of two hosts, one is exported, whose ranks also worked with those of the other one
	jobtest.WriteTraining(t, dir, 2*jobtest.PerHost, 5)
	res, _, ranks = chakraOf(t, jobtest.Unify(t, dir), &selection.Spec{Ranks: "0-7"})
	testkit.Equal(t, len(ranks), jobtest.PerHost, "ranks")
	testkit.Same(t, res.LeftOut, map[string]uint64{"operations that not all members ended": 2 * 40 * 8,
		"ranks without operations that can be played": 8})
	for what, anchor := range map[string]string{
		"no size": make(func(int) int { return 2 }, 0), "a member has none": make(func(r int) int { return r }, 10),
	} {
		dir := filepath.Join(t.TempDir(), "et")
		_, err := Chakra(jobtest.Open(t, anchor), dir, nil)
		testkit.Check(t, err != nil && strings.Contains(err.Error(), "nothing to play"), "%s: %v", what, err)
		testkit.Check(t, !slices.Contains(list(t, filepath.Dir(dir)), "et"), "%s: a folder is left", what)
	}
	res, _, ranks = chakraOf(t, jobtest.Make(t, 2, 2, func(r int, p *shardtest.Process) {
		world := p.World()
		p.AllReduce(world, t0+100*us, t0+145*us, 10)
		p.Send(world, r, t0+200*us, t0+210*us, 10)
		p.Recv(world, r, t0+220*us, t0+230*us, 10)
	}), nil)
	testkit.Equal(t, len(ranks[0]), 1, "nodes beside messages to itself")
	testkit.Same(t, res.LeftOut, map[string]uint64{"messages of a rank to itself": 4})
	_, err := Chakra(jobtest.Open(t, make(func(int) int { return 1 }, 1)), "/proc/no/folder", nil)
	testkit.Check(t, errors.Unwrap(err) != nil, "a folder that cannot be made: %v", err)
}
