// SPDX-License-Identifier: Apache-2.0

package export

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Field numbers and values of Chakra's execution traces, from their published definition: schema/protobuf/et_def.proto
// of github.com/mlcommons/chakra, version 1.0.0. Names and types of attributes are those that its feeder (src/feeder)
// and ASTRA-sim read.
const (
	chakraVersion = "1.0.0"

	metadataVersion   = 1
	metadataAttribute = 2

	nodeID        = 1
	nodeName      = 2
	nodeType      = 3
	nodeDataDeps  = 5
	nodeStart     = 6
	nodeDuration  = 7
	nodeAttribute = 10

	attributeName   = 1
	attributeInt32  = 7
	attributeInt64  = 9
	attributeBool   = 27
	attributeString = 29

	compNode = 4
	sendNode = 5
	recvNode = 6
	collNode = 7
)

// chakraCollectives are Chakra's numbers for NCCL's collectives.
var chakraCollectives = map[string]uint64{"AllReduce": 0, "Reduce": 1, "AllGather": 2, "Gather": 3, "Scatter": 4,
	"Broadcast": 5, "AlltoAll": 6, "ReduceScatter": 7}

// Names of the files in the folder.
const (
	chakraName   = "nccl"
	chakraGroups = chakraName + ".comm_groups.json"
)

// Chakra writes an execution trace of each rank, nccl.<rank>.et, into a folder, which it creates if needed, and the
// members of communicators, nccl.comm_groups.json, as ASTRA-sim reads them.
//
// A step of a rank begins when the work before it is done, which begins when the last step has ended that had ended
// when it began. It also follows the one before it on its communicator.
func Chakra(a *otf2.Archive, dir string, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	steps, err := newStepReader(e)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.MakeFolder(dir); err != nil {
		return nil, err
	}
	steps.between = true // ASTRA-sim's networks have no others
	c := &chakraWriter{stepReader: steps}
	err = steps.eachRank(func(rank int, all []*playStep) error {
		path := filepath.Join(dir, fmt.Sprintf("%s.%d.et", chakraName, rank))
		return e.writeFile(path, nil, func(w io.Writer) error { return c.writeRank(w, rank, all) })
	})
	if err != nil {
		return nil, err
	}
	if err := e.writeFile(filepath.Join(dir, chakraGroups), nil, c.writeGroups); err != nil {
		return nil, err
	}
	return &e.result, nil
}

// chakraWriter writes the messages of one file. It keeps its first error.
type chakraWriter struct {
	*stepReader
	w       io.Writer
	message []byte
	piece   []byte // an attribute, or what a node depends on
	sized   []byte // the message behind its length
	err     error
}

// writeGroups writes the members of communicators by their numbers, because ASTRA-sim's groups have no other names.
func (c *chakraWriter) writeGroups(w io.Writer) error {
	groups := make(map[int][]int)
	for ref, number := range c.numbers {
		groups[number] = c.rows.comms[ref].World
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// writeRank writes the trace of a rank.
func (c *chakraWriter) writeRank(w io.Writer, rank int, steps []*playStep) error {
	c.w, c.err = w, nil
	c.message = putText(c.message[:0], metadataVersion, chakraVersion)
	c.addText(metadataAttribute, "producer", "nccl-otf2 "+c.opts.Version)
	c.addText(metadataAttribute, "rank_name", c.rows.world[rank].Name)
	c.addText(metadataAttribute, "host", c.rows.world[rank].Host)
	c.finish()
	ids := uint64(0)
	first := make([]uint64, len(steps)) // id of each step's first operation
	last := make(map[*comm]uint64)      // operation on each communicator
	for i, s := range steps {
		var after []uint64
		if s.before >= 0 {
			for k := range steps[s.before].operations {
				after = append(after, first[s.before]+uint64(k))
			}
			ids++
			c.writeWork(ids, after, s, steps[s.before].end)
			after = append(after[:0], ids)
		}
		first[i] = ids + 1
		for k := range s.operations {
			o, deps := &s.operations[k], after
			if id := last[o.comm]; id > 0 {
				deps = append(deps[:len(deps):len(deps)], id)
			}
			ids++
			c.writeOperation(ids, deps, o)
		}
		for k := range s.operations {
			last[s.operations[k].comm] = first[i] + uint64(k)
		}
	}
	return c.err
}

// writeWork writes what the rank did between the end of a step and the begin of the next one. In start-up, NCCL made
// connections meanwhile, so it is not known how long the rank worked.
func (c *chakraWriter) writeWork(id uint64, after []uint64, s *playStep, since otf2.Timestamp) {
	if s.startUp {
		since = s.begin
	}
	c.beginNode(id, compNode, "work before "+s.operations[0].function, after, since, s.begin)
	c.finish()
	c.countRecord("gaps of work")
}

func (c *chakraWriter) writeOperation(id uint64, after []uint64, o *stepOperation) {
	collective, isCollective := chakraCollectives[o.function]
	kind := uint64(collNode)
	switch o.function {
	case "Send":
		kind = sendNode
	case "Recv":
		kind = recvNode
	}
	c.beginNode(id, kind, o.function, after, o.begin, o.end)
	group := c.numbers[o.comm.Ref]
	c.addNumber("comm_size", attributeInt64, o.input())
	switch {
	case isCollective:
		c.addNumber("comm_type", attributeInt64, collective)
		c.addNumber("comm_priority", attributeInt32, 0)
		if o.root >= 0 {
			c.addNumber("root_rank", attributeInt32, uint64(o.comm.World[o.root]))
		}
	default:
		from, to := o.comm.World[o.rank], o.comm.World[o.peer]
		if kind == recvNode {
			from, to = to, from
		}
		c.addNumber("comm_src", attributeInt32, uint64(from))
		c.addNumber("comm_dst", attributeInt32, uint64(to))
		c.addNumber("comm_tag", attributeInt32, uint64(group))
	}
	c.addText(nodeAttribute, "pg_name", fmt.Sprint(group))
	c.addText(nodeAttribute, "pg_desc", o.comm.Name)
	c.finish()
	c.countRecord("operations")
}

// micros returns a time in whole µs since the begin of the archive. Durations are differences of these, so that the
// errors of rounding do not add up.
func (c *chakraWriter) micros(t otf2.Timestamp) uint64 {
	return uint64(max(c.rows.clock.fromBegin(t), 0)) / 1000
}

// beginNode begins a node; attributes are added to it, and finish ends it.
func (c *chakraWriter) beginNode(id, kind uint64, name string, after []uint64, begin, end otf2.Timestamp) {
	c.piece = c.piece[:0]
	for _, id := range after {
		c.piece = protowire.AppendVarint(c.piece, id)
	}
	c.message = putText(putNumber(c.message[:0], nodeID, id), nodeName, name)
	c.message = putBytes(putNumber(c.message, nodeType, kind), nodeDataDeps, c.piece)
	c.message = putNumber(c.message, nodeStart, c.micros(begin))
	c.message = putNumber(c.message, nodeDuration, c.micros(end)-c.micros(begin))
	c.addNumber("is_cpu_op", attributeBool, 0)
}

func (c *chakraWriter) addNumber(name string, kind protowire.Number, v uint64) {
	c.piece = putNumber(putText(c.piece[:0], attributeName, name), kind, v)
	c.message = putBytes(c.message, nodeAttribute, c.piece)
}

// addText adds an attribute to a member of the message.
func (c *chakraWriter) addText(member protowire.Number, name, text string) {
	c.piece = putText(putText(c.piece[:0], attributeName, name), attributeString, text)
	c.message = putBytes(c.message, member, c.piece)
}

// finish writes the message behind its length.
func (c *chakraWriter) finish() {
	c.sized = protowire.AppendBytes(c.sized[:0], c.message)
	if c.err == nil {
		_, c.err = c.w.Write(c.sized)
	}
}
