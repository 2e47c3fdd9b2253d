// SPDX-License-Identifier: Apache-2.0

package export

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// Program writes what the ranks called as a program for ncclrun (tests/realnccl), which calls NCCL again, to path, or
// to stdout if that is "-": communicators by their members, and for each rank its calls in their order, in their groups
// and on their streams, with the work before them as a delay.
//
// Reductions are sums, because NCCL does not report which they were, and buffers are not in place.
func Program(a *otf2.Archive, path string, stdout io.Writer, opts *Options) (*Result, error) {
	e := newExporter(a, opts)
	steps, err := newStepReader(e)
	if err != nil {
		return nil, err
	}
	err = e.writeFile(path, stdout, (&programWriter{stepReader: steps}).write)
	if err != nil {
		return nil, err
	}
	return &e.result, nil
}

// programWords are the driver's words for NCCL's functions; rooted ones are followed by the root, messages by the peer.
var programWords = map[string]string{"AllReduce": "ar", "AllGather": "ag", "ReduceScatter": "rs", "Broadcast": "bc",
	"Reduce": "rd", "AlltoAll": "alltoall", "Gather": "gather", "Scatter": "scatter", "Send": "send", "Recv": "recv"}

// programTypes are the driver's names of NCCL's types. NCCL calls ncclUint8 "Unknown".
var programTypes = map[string]string{"ncclInt8": "i8", "ncclUint8": "u8", "Unknown": "u8", "ncclInt32": "i32",
	"ncclUint32": "u32", "ncclInt64": "i64", "ncclUint64": "u64", "ncclFloat16": "f16", "ncclBfloat16": "bf16",
	"ncclFloat32": "f32", "ncclFloat64": "f64", "ncclFloat8e4m3": "f8e4m3", "ncclFloat8e5m2": "f8e5m2"}

// programStreams is the number of streams that the driver has.
const programStreams = 4

// leastGap is the shortest gap that is written, ns: calls take as long by themselves.
const leastGap = 20_000

type programWriter struct {
	*stepReader
	blocks strings.Builder // of ranks
	buffer uint64          // bytes of the largest
	width  int             // of the current line

	streams      map[uint64]int // of the current rank
	stream, comm int
}

func (p *programWriter) write(w io.Writer) error {
	if err := p.eachRank(p.addRank); err != nil {
		return err
	}
	text := new(strings.Builder)
	fmt.Fprintf(text, "# What %d ranks called of NCCL, exported by nccl-otf2 %s: ncclrun -n %d -c 0 -b %d @FILE\n",
		len(p.rows.world), p.opts.Version, len(p.rows.world), max(p.buffer, 1))
	refs := slices.SortedFunc(maps.Keys(p.numbers), func(a, b otf2.CommRef) int {
		return cmp.Compare(p.numbers[a], p.numbers[b])
	})
	for _, ref := range refs {
		c := p.rows.comms[ref]
		members := strings.ReplaceAll(strings.Trim(fmt.Sprint(c.World), "[]"), " ", ",")
		fmt.Fprintf(text, "initof:%d:%s:%s\n", p.numbers[ref]-1, members, programName(c.Name))
	}
	_, err := io.WriteString(w, text.String()+p.blocks.String())
	return err
}

// programName returns a communicator's name without what the driver's language cannot express.
func programName(name string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f && !strings.ContainsRune(`:;()[]#"\`, r) {
			return r
		}
		return '_'
	}, name[:min(len(name), 40)])
}

// addWord adds a word to the block of a rank.
func (p *programWriter) addWord(word string) {
	const most = 110
	separator := " "
	if p.width += len(word) + 1; p.width > most {
		separator, p.width = "\n\t", len(word)
	}
	p.blocks.WriteString(separator + word)
}

// addRank adds what a rank called. A step's delay counts from the end of the steps before it, for which the rank then
// waits; while others still run, which it cannot wait for, from when it called the step before.
func (p *programWriter) addRank(rank int, steps []*playStep) error {
	slices.SortStableFunc(steps, func(a, b *playStep) int {
		return cmp.Compare(cmp.Or(a.called, a.begin), cmp.Or(b.called, b.begin))
	})
	findBefore(steps)
	p.streams, p.stream, p.comm, p.width = make(map[uint64]int), -1, -1, 1<<10
	fmt.Fprintf(&p.blocks, "%d?[", rank)
	var since, running otf2.Timestamp // since which the rank worked; until which a step ran
	for _, s := range steps {
		if s.before >= 0 && steps[s.before].end > since && running <= s.begin {
			p.addWord("sync")
			since = steps[s.before].end
		}
		at := s.begin
		if s.called > since {
			at = s.called
		}
		if gap := p.rows.clock.nanoseconds(int64(at - min(since, at))); since > 0 && !s.startUp && gap >= leastGap {
			p.addWord("work:" + strconv.FormatFloat(float64(gap)/1e6, 'f', 3, 64))
		}
		since, running = max(since, at), max(running, s.end)
		p.addCalls(s)
	}
	p.blocks.WriteString("\n\tsync ]\n")
	return nil
}

func (p *programWriter) addCalls(s *playStep) {
	if len(s.operations) > 1 {
		p.addWord("(")
	}
	for i := range s.operations {
		o := &s.operations[i]
		comm := p.numbers[o.comm.Ref] - 1
		if _, known := p.streams[o.stream]; !known {
			p.streams[o.stream] = len(p.streams) % programStreams
		}
		stream := p.streams[o.stream]
		if o.stream == 0 {
			stream = comm % programStreams
		}
		if comm != p.comm {
			p.addWord(fmt.Sprintf("comm:%d", comm))
		}
		if stream != p.stream {
			p.addWord(fmt.Sprintf("stream:%d", stream))
		}
		p.comm, p.stream, p.buffer = comm, stream, max(p.buffer, o.size)
		p.addWord(programCall(o))
		p.countRecord("calls")
	}
	if len(s.operations) > 1 {
		p.addWord(")")
	}
}

// programCall returns the word of an operation. Where its type or the number of elements is unknown, it is of bytes.
func programCall(o *stepOperation) string {
	count, typ := o.count, programTypes[o.datatype]
	if typ == "" || count == 0 {
		count, typ = o.share, "u8"
	}
	text := fmt.Sprintf("%s:%d", programWords[o.function], count)
	if other := max(o.root, o.peer); other >= 0 {
		text = fmt.Sprintf("%s:%d", text, other)
	}
	return text + ":" + typ
}
