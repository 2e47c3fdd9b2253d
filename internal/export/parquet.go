// SPDX-License-Identifier: Apache-2.0

package export

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/matrix"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/operations"
	"github.com/nccl-otf2/nccl-otf2/internal/analysis/waits"
	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/facts"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/membership"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/property"
	"github.com/nccl-otf2/nccl-otf2/internal/facts/timing"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/regions"
)

// schemaVersion is the version of the tables. It increases when tables or columns are added; none is ever removed,
// renamed or redefined.
const schemaVersion = 2

// rowsPerGroup bounds the memory of a table, which holds a row group until it is full: 10 to 20 MB of operations.
const rowsPerGroup = 1 << 17

// Names of the tables' files.
const (
	OperationsFile = "operations.parquet"
	TransfersFile  = "transfers.parquet"
	WaitsFile      = "waits.parquet"
	PhasesFile     = "phases.parquet"
	RunsFile       = "runs.parquet"
)

// Operation is a row of the table of operations: one member's part in a collective, or one end of a message. Times
// named …_ns are nanoseconds since 1970, and lengths of time nanoseconds.
type Operation struct {
	Run          string  `parquet:"run,dict"` // that of the table of runs
	Communicator string  `parquet:"communicator,dict"`
	Comm         int32   `parquet:"comm"`             // the archive's id of the communicator
	CommID       *uint64 `parquet:"comm_id,optional"` // NCCL's, not unique by itself
	Ranks        int32   `parquet:"ranks"`            // of the communicator
	Rank         int32   `parquet:"rank"`             // in it
	WorldRank    int32   `parquet:"world_rank"`       // of the job, from 0
	RankName     string  `parquet:"rank_name,dict"`
	Host         string  `parquet:"host,dict"`
	GPU          *string `parquet:"gpu,optional,dict"`
	Function     string  `parquet:"function,dict"`
	Ordinal      int64   `parquet:"ordinal"`
	Begin        int64   `parquet:"begin_ns"`
	End          int64   `parquet:"end_ns"`
	Duration     int64   `parquet:"duration_ns"`
	Root         *int32  `parquet:"root,optional"`
	Peer         *int32  `parquet:"peer,optional"`
	Size         int64   `parquet:"size_bytes"` // as nccl-tests counts
	Elements     *int64  `parquet:"elements,optional"`
	Datatype     *string `parquet:"datatype,optional,dict"`
	Algorithm    *string `parquet:"algorithm,optional,dict"`
	Protocol     *string `parquet:"protocol,optional,dict"`
	Channels     *int32  `parquet:"channels,optional"`
	TimingSource *string `parquet:"timing_source,optional,dict"`
	Uncertainty  *int64  `parquet:"uncertainty_ns,optional"`
	// of this member's time; of one of several equal ones of a launch of its part
	AlgBW   *float64 `parquet:"algbw_gbs,optional"`
	BusBW   *float64 `parquet:"busbw_gbs,optional"`
	StartUp bool     `parquet:"start_up"` // of the member's first launch on the communicator
	// operations of its launch, all equal, which share its time; 0: it is alone, or they differ
	Equal      int32   `parquet:"launched_equal"`
	InPlace    *bool   `parquet:"in_place,optional"`
	Variant    *string `parquet:"variant,optional,dict"`
	Graph      bool    `parquet:"graph"`
	Grouped    bool    `parquet:"grouped"`
	Plan       *int64  `parquet:"plan,optional"`
	Consistent bool    `parquet:"alike"`
	EventID    *uint64 `parquet:"event_id,optional"`
	ParentID   *uint64 `parquet:"parent_id,optional"`
	Location   uint64  `parquet:"location"`
	Members    int32   `parquet:"members"`                 // of the communicator, of which there is data
	WaitKind   *string `parquet:"wait_kind,optional,dict"` // of collectives: whom their members wait for
	Leads      bool    `parquet:"leads"`                   // the first collective of its launch on the communicator
	Device     bool    `parquet:"device"`                  // a buffer is known to be in a GPU's memory
	BusFactor  float64 `parquet:"bus_factor"`
}

// TransferRow is a row of the table of transfers: one transfer over the network.
type TransferRow struct {
	Run          string  `parquet:"run,dict"` // that of the table of runs
	Communicator string  `parquet:"communicator,dict"`
	Comm         *int32  `parquet:"comm,optional"`
	From         *int32  `parquet:"from_rank,optional"`
	To           int32   `parquet:"to_rank"`
	FromWorld    *int32  `parquet:"from_world_rank,optional"`
	ToWorld      *int32  `parquet:"to_world_rank,optional"`
	FromName     *string `parquet:"from_name,optional,dict"`
	ToName       *string `parquet:"to_name,optional,dict"`
	FromHost     *string `parquet:"from_host,optional,dict"`
	ToHost       *string `parquet:"to_host,optional,dict"`
	// the process whose proxy made the transfer: with PXN not the sender
	Executor string  `parquet:"executor,dict"`
	Channel  *int32  `parquet:"channel,optional"`
	Step     *int32  `parquet:"step,optional"`
	QP       *int32  `parquet:"qp,optional"`
	Begin    int64   `parquet:"begin_ns"`
	End      *int64  `parquet:"end_ns,optional"`
	Duration *int64  `parquet:"duration_ns,optional"`
	Bytes    int64   `parquet:"bytes"`
	ParentID *uint64 `parquet:"parent_id,optional"`
	Location uint64  `parquet:"location"`
}

// WaitRow is a row of the table of waits: one member waited for another at the start of an operation.
type WaitRow struct {
	Run          string `parquet:"run,dict"` // that of the table of runs
	Kind         string `parquet:"kind,dict"`
	Communicator string `parquet:"communicator,dict"`
	Comm         int32  `parquet:"comm"`
	Function     string `parquet:"function,dict"`
	Ordinal      int64  `parquet:"ordinal"`
	Rank         int32  `parquet:"rank"`
	Peer         *int32 `parquet:"peer,optional"`
	WorldRank    int32  `parquet:"world_rank"`
	RankName     string `parquet:"rank_name,dict"`
	Host         string `parquet:"host,dict"`
	ForWorldRank int32  `parquet:"for_world_rank"`
	ForName      string `parquet:"for_rank_name,dict"`
	ForHost      string `parquet:"for_host,dict"`
	Begin        int64  `parquet:"begin_ns"`
	Time         int64  `parquet:"time_ns"`
	Waited       int64  `parquet:"waited_ns"`
	Uncertainty  *int64 `parquet:"uncertainty_ns,optional"`
	Source       string `parquet:"timing_source,dict"`
	StartUp      bool   `parquet:"start_up"`
	Skew         *int64 `parquet:"skew_ns,optional"`
}

// Codecs are the compressions that tables can have.
var codecs = map[string]compress.Codec{"zstd": &parquet.Zstd, "snappy": &parquet.Snappy, "none": &parquet.Uncompressed}

// Codecs returns the names of the available compressions of Parquet files; the first is the default.
func Codecs() []string { return []string{"zstd", "snappy", "none"} }

// Parquet writes the tables of an archive into a folder, which it creates if necessary. With Options.Parts, it writes
// the two large tables as one file for each slice of the archive, in parallel.
func Parquet(a *otf2.Archive, dir, codec string, opts *Options) (*Result, error) {
	c, ok := codecs[codec]
	if !ok {
		return nil, fmt.Errorf("compression %q is unknown; use one of %s", codec, strings.Join(Codecs(), ", "))
	}
	if err := atomicfile.MakeFolder(dir); err != nil {
		return nil, err
	}
	e := newExporter(a, opts)
	if err := e.writeParts(dir, c); err != nil {
		return nil, err
	}
	return &e.result, removeOtherParts(dir, e.opts.Parts)
}

// tableFile is a table's file.
type tableFile struct {
	name  string
	write func(e *exporter, w io.Writer, codec compress.Codec) error
}

var (
	largeTables = []tableFile{{OperationsFile, (*exporter).writeOperations},
		{TransfersFile, (*exporter).writeTransfers}}
	// runs follow waits
	smallTables = []tableFile{{WaitsFile, (*exporter).writeWaits}, {PhasesFile, (*exporter).writePhases},
		{RunsFile, (*exporter).writeRuns}}
)

// writeTableFiles writes the files of tables one after the other.
func (e *exporter) writeTableFiles(dir string, files []tableFile, codec compress.Codec) error {
	for _, table := range files {
		err := e.writeFile(filepath.Join(dir, table.name), nil, func(w io.Writer) error {
			return table.write(e, w, codec)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", table.name, err)
		}
	}
	return nil
}

// table writes rows one after the other.
type table[T any] struct {
	w     *parquet.GenericWriter[T]
	batch []T
	e     *exporter
	kind  string
}

const batchRows = 512

func newTable[T any](e *exporter, w io.Writer, kind string, codec compress.Codec) *table[T] {
	return &table[T]{e: e, kind: kind, w: parquet.NewGenericWriter[T](w,
		parquet.Compression(codec), parquet.MaxRowsPerRowGroup(rowsPerGroup),
		parquet.CreatedBy("nccl-otf2", e.opts.Version, ""),
		parquet.KeyValueMetadata("nccl-otf2.table", kind),
		parquet.KeyValueMetadata("nccl-otf2.schema_version", strconv.Itoa(schemaVersion)),
		parquet.KeyValueMetadata("nccl-otf2.schema", strconv.Itoa(schemaVersion)),
		parquet.KeyValueMetadata("nccl-otf2.trace_id", e.runName()),
	)}
}

func (t *table[T]) add(row T) error {
	t.batch = append(t.batch, row)
	t.e.countRecord(t.kind)
	if len(t.batch) < batchRows {
		return nil
	}
	return t.flush()
}

func (t *table[T]) flush() error {
	_, err := t.w.Write(t.batch)
	t.batch = t.batch[:0]
	return err
}

func (t *table[T]) close() error { return errors.Join(t.flush(), t.w.Close()) }

// valueIfKnown returns a pointer to a value for an optional column, nil if the value is not known.
func valueIfKnown[T any](v T, is bool) *T {
	if !is {
		return nil
	}
	return &v
}

func rankOrNone(rank int) *int32  { return valueIfKnown(int32(rank), rank >= 0) }
func textOrNone(s string) *string { return valueIfKnown(s, s != "") }

func (e *exporter) writeOperations(w io.Writer, codec compress.Codec) error {
	t := newTable[Operation](e, w, "operations", codec)
	r, clock := e.rows, &e.rows.clock
	present := analysis.MembersWithData(e.archive.Defs, membership.Communicators(e.archive.Defs))
	problems, err := operations.EachPart(e.archive, e.opts.Selection, e.slice, func(p *operations.Part) error {
		row := r.rowOn(p.Location, p.Comm)
		o := Operation{
			Run: e.runName(), Members: int32(present[p.Comm]), WaitKind: textOrNone(p.WaitKind), Leads: p.Leads,
			Device: p.Device, BusFactor: p.BusFactor,
			Communicator: p.Communicator, Comm: int32(p.Comm), CommID: valueIfKnown(row.commID, row.hasID),
			Ranks: int32(p.Ranks), Rank: int32(p.Rank),
			WorldRank: int32(r.worldRank(p.Location)), Host: row.process.host, GPU: textOrNone(row.gpu),
			Function: p.Function,
			Ordinal:  int64(p.Ordinal), Begin: clock.since1970(p.Begin), End: clock.since1970(p.End),
			Root: rankOrNone(p.Root), Peer: rankOrNone(p.Peer),
			Size: int64(p.Size), Elements: valueIfKnown(int64(p.Count), p.Counted), Datatype: textOrNone(p.Datatype),
			Algorithm: textOrNone(p.Algorithm),
			Protocol:  textOrNone(p.Protocol), Channels: valueIfKnown(int32(p.Channels), p.Channels > 0),
			TimingSource: textOrNone(p.Source),
			Uncertainty:  valueIfKnown(int64(p.Uncertainty), p.Stated), Graph: p.Graph, Grouped: p.Grouped,
			Plan: valueIfKnown(int64(p.Plan), p.Plan > 0), Consistent: p.Consistent,
			StartUp: p.StartUp, Equal: int32(p.Equal),
			InPlace: valueIfKnown(p.InPlace == facts.InPlaceOnly, p.InPlace != facts.InPlaceUnknown),
			Variant: textOrNone(p.Variant),
			EventID: valueIfKnown(p.Event, p.Event != 0), ParentID: valueIfKnown(p.Parent, p.Parent != 0),
			Location: uint64(p.Location),
		}
		o.Duration = o.End - o.Begin
		if o.WorldRank >= 0 {
			o.RankName = r.world[o.WorldRank].Name
		}
		if algbw, ok := partBandwidth(p, o.Duration); ok {
			o.AlgBW, o.BusBW = valueIfKnown(algbw, true), valueIfKnown(algbw*p.BusFactor, true)
		}
		return t.add(o)
	})
	e.addProblems(problems)
	return errors.Join(err, t.close())
}

// partBandwidth returns the bandwidth of an operation in GB/s by one member's time; ok is false if that is not the time
// of the operation alone.
func partBandwidth(p *operations.Part, duration int64) (algbw float64, ok bool) {
	if duration <= 0 || !p.HasBandwidth() {
		return 0, false
	}
	return timing.Bandwidth(float64(p.Size), float64(duration)/float64(max(p.Equal, 1))), true
}

func (e *exporter) writeTransfers(w io.Writer, codec compress.Codec) error {
	t := newTable[TransferRow](e, w, "transfers", codec)
	r, clock := e.rows, &e.rows.clock
	if ps := property.Read(e.archive.Anchor); ps.NetStepsSummed() && e.opts.Selection == nil {
		e.result.LeftOut[summedTransfers], _ = ps.Number(property.Network.Below(regions.NetPuts))
	}
	problems, err := matrix.EachTransfer(e.archive, e.slice, func(x *matrix.Transfer) error {
		if !e.opts.Selection.At(x.Location, x.Begin) {
			return nil
		}
		o := TransferRow{
			Run:          e.runName(),
			Communicator: x.Communicator, Comm: valueIfKnown(int32(x.Comm), x.Comm != otf2.UndefinedComm),
			From: rankOrNone(x.From), To: int32(x.To),
			Channel: rankOrNone(x.Channel), Step: rankOrNone(x.Step), QP: rankOrNone(x.QP),
			Begin: clock.since1970(x.Begin), Bytes: int64(x.Bytes),
			ParentID: valueIfKnown(x.Parent, x.Parent != 0), Location: uint64(x.Location),
		}
		if row := r.of[x.Location]; row != nil {
			o.Executor = row.process.name
		}
		if x.Ended {
			end := clock.since1970(x.End)
			o.End, o.Duration = &end, valueIfKnown(end-o.Begin, true)
		}
		if c := r.comms[x.Comm]; c != nil {
			o.FromWorld, o.FromName, o.FromHost = r.memberOf(c, x.From)
			o.ToWorld, o.ToName, o.ToHost = r.memberOf(c, x.To)
		}
		return t.add(o)
	})
	e.addProblems(problems)
	return errors.Join(err, t.close())
}

// memberOf returns what is known of a rank of a communicator.
func (r *rows) memberOf(c *comm, rank int) (world *int32, name, host *string) {
	if rank < 0 || rank >= len(c.Members) {
		return nil, nil, nil
	}
	i := c.World[rank]
	if i < 0 {
		return nil, nil, nil
	}
	return rankOrNone(i), &r.world[i].Name, &r.world[i].Host
}

func (e *exporter) writeWaits(w io.Writer, codec compress.Codec) error {
	t := newTable[WaitRow](e, w, "waits", codec)
	r, clock := e.rows, &e.rows.clock
	var err error
	problems := operations.EachMatch(e.archive,
		&operations.Matches{Selection: e.opts.Selection, Span: func(s operations.Span) { e.span = s },
			Wait: func(x *waits.Wait) {
				if err != nil {
					return
				}
				me, other := &r.world[x.World], &r.world[x.For]
				err = t.add(WaitRow{
					Run:  e.runName(),
					Kind: x.Kind, Communicator: x.Communicator, Comm: int32(x.Comm), Function: x.Function,
					Ordinal: int64(x.Ordinal), Rank: int32(x.Rank),
					Peer: rankOrNone(x.Peer), WorldRank: int32(x.World), RankName: me.Name, Host: me.Host,
					ForWorldRank: int32(x.For), ForName: other.Name,
					ForHost: other.Host, Begin: clock.since1970(x.Begin), Time: clock.nanoseconds(int64(x.Time)),
					Waited:      clock.nanoseconds(int64(x.Waited)),
					Uncertainty: valueIfKnown(int64(x.Uncertainty), x.Stated), Source: x.Source, StartUp: x.StartUp,
					Skew: valueIfKnown(clock.nanoseconds(int64(x.Skew)), x.Peer < 0),
				})
			}})
	e.addProblems(problems)
	return errors.Join(err, t.close())
}
