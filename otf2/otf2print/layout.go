// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// fieldLabels are the texts before the values of those fields whose label is not their name in words, by record and
// field or by field.
var fieldLabels = map[string]string{
	"measurementMode": "Mode", "msgTag": "Tag", "msgLength": "Length", "requestID": "Request", "requestId": "Request",
	"collectiveOp": "Operation", "sizeSent": "Sent", "sizeReceived": "Received", "bytesSent": "Sent",
	"bytesReceived": "Received", "numberOfRequestedThreads": "# Requested Threads", "lockID": "Lock", "lockId": "Lock",
	"lockType": "Type", "taskID": "Task", "string": "Value", "win": "Window", "syncLevel": "Level of Synchronicity",
	"matchingId": "Matching", "messageId": "Message", "ioParadigm": "I/O Paradigm", "exitStatus": "Exit status",
	"numberOfRecords": "# Events", "contReadPos": "Cont. Read Position",

	"IoCreateHandle.mode":             "Access Mode",
	"IoOperationBegin.matchingId":     "Matching Id",
	"IoOperationTest.matchingId":      "Matching Id",
	"IoOperationIssued.matchingId":    "Matching Id",
	"IoOperationComplete.matchingId":  "Matching Id",
	"IoOperationCancelled.matchingId": "Matching Id",
	"MpiProbe.communicator":           "Communicator ", // the space is otf2-print 3.2's
}

// labelOf is the text before a field's value.
func labelOf(record, field string) string {
	return cmp.Or(fieldLabels[record+"."+field], fieldLabels[field], words(field))
}

// words turns a name such as stopTime into words: Stop Time.
func words(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0:
			r = unicode.ToUpper(r)
		case unicode.IsUpper(r):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ranks are the fields that are ranks of the communicator or window that another field of their record names.
var ranks = []string{"receiver", "sender", "root", "remote", "creatingThread"}

// eventNames lists the records that otf2-print calls otherwise than libotf2.
var eventNames = map[string]string{
	"ParameterInt": "PARAMETER_INT64", "ParameterUnsignedInt": "PARAMETER_UINT64",
	"IoChangeStatusFlags": "IO_CHANGE_FLAGS",
}

// layout is a prepared event layout.
type layout struct {
	name   string
	pieces []piece
}

// piece is literal text and the field behind it.
type piece struct {
	text  string
	arg   int // index of the field's argument
	form  form
	kind  otf2.DefKind // formRef
	enum  string       // formEnum, formFlags
	other int          // formRank, formWindowRank: argument that names the communicator or window
	words []word       // of formNumber and formSigned: what some values are called
	roots bool         // a rank that may be one of the CollectiveRoot constants
}

// word stands for a value.
type word struct {
	value uint64
	text  string
}

// wordsOf are the words of a number's values. OTF2 3.2 names the undefined ones of all but parameters, which are the
// application's, 3.0 those of the exit status and of the unwind distance alone.
func wordsOf(record string, f *otf2.Field, as otf2.Version) []word {
	switch {
	case record == "ProgramEnd", f.Name == "unwindDistance":
	case as < v32 || strings.HasPrefix(record, "Parameter"):
		return nil
	}
	undefined := uint64(1<<64 - 1)
	switch f.Encoding {
	case otf2.EncodingC32:
		undefined = 1<<32 - 1
	case otf2.EncodingS64:
		undefined = 1 << 63
	}
	words := []word{{undefined, "UNDEFINED"}}
	if f.Name == "generationNumber" {
		words = append(words, word{0, "IMPLICIT"})
	}
	return words
}

// v32 is the version whose text has other words for numbers, and other members of groups of global members.
const v32 otf2.Version = 0x302

type form uint8

const (
	formNumber form = iota
	formSigned
	formTime
	formRef
	formEnum
	formFlags
	formParadigm
	formRank
	formWindowRank
)

// newLayout prepares the layout of a record with these fields, in the form of a version: each with its label, in their
// order. Metric and ProgramBegin, with their repetitions, are written by functions of their own.
func newLayout(record, upper string, fields []otf2.Field, as otf2.Version) *layout {
	l := &layout{name: cmp.Or(eventNames[record], upper)}
	among := slices.IndexFunc(fields, func(f otf2.Field) bool { return f.Type == "CommRef" || f.Type == "RmaWinRef" })
	for arg := range fields {
		f := &fields[arg]
		if f.Name == "origEventTime" { // of a snapshot's record: a column of its own
			continue
		}
		p := pieceOf(f)
		p.text, p.arg = ", "+labelOf(record, f.Name)+": ", arg
		switch {
		case slices.Contains(ranks, f.Name):
			p.other, p.roots, p.form = among, f.Type == "CollectiveRoot", formRank
			if fields[among].Type == "RmaWinRef" {
				p.form = formWindowRank
			}
		case p.form == formNumber || p.form == formSigned:
			p.words = wordsOf(record, f, as)
		}
		l.pieces = append(l.pieces, p)
	}
	if record == "RmaCollectiveEnd" { // it has the window before the level
		l.pieces[1], l.pieces[2] = l.pieces[2], l.pieces[1]
	}
	if len(l.pieces) > 0 {
		l.pieces[0].text = strings.TrimPrefix(l.pieces[0].text, ", ")
	}
	return l
}

// pieceOf says how a field is written by its type alone.
func pieceOf(f *otf2.Field) (p piece) {
	switch kind, isRef := kindsByName[f.Type]; {
	case f.Type == "Timestamp":
		p.form = formTime
	case f.Type == "Paradigm":
		p.form = formParadigm
	case isRef:
		p.form, p.kind = formRef, kind
	case isFlags(f.Type):
		p.form, p.enum = formFlags, f.Type
	case f.Type != "":
		p.form, p.enum = formEnum, f.Type
	case f.Encoding == otf2.EncodingS64:
		p.form = formSigned
	}
	return p
}

// isFlags reports whether values of an enumeration may be combined.
func isFlags(enum string) bool { return strings.HasSuffix(enum, "Flag") || enum == "RmaSyncLevel" }

// append writes the fields of an event of location at.
func (l *layout) append(b []byte, n *names, at otf2.LocationRef, args []uint64) []byte {
	for i := range l.pieces {
		p := &l.pieces[i]
		b = append(b, p.text...)
		if at := slices.IndexFunc(p.words, func(w word) bool { return w.value == args[p.arg] }); at >= 0 {
			b = append(b, p.words[at].text...)
			continue
		}
		b = p.append(b, n, at, args)
	}
	return b
}

// append writes a field by its form.
func (p *piece) append(b []byte, n *names, at otf2.LocationRef, args []uint64) []byte {
	switch v := args[p.arg]; p.form {
	case formSigned:
		return strconv.AppendInt(b, int64(v), 10)
	case formTime:
		return appendTime(b, v, n.epoch)
	case formRef:
		return n.appendRef(b, p.kind, v)
	case formEnum:
		return appendEnum(b, p.enum, v)
	case formFlags:
		return appendFlags(b, p.enum, v)
	case formParadigm:
		return n.appendParadigm(b, otf2.Paradigm(v))
	case formRank, formWindowRank:
		return p.appendRank(b, n, at, otf2.CommRef(args[p.other]), v)
	default:
		return strconv.AppendUint(b, v, 10)
	}
}

// appendRank writes a rank of a communicator, or of the one of the window of that number.
func (p *piece) appendRank(b []byte, n *names, at otf2.LocationRef, comm otf2.CommRef, rank uint64) []byte {
	if name, ok := otf2.EnumName("CollectiveRoot", rank); ok && p.roots {
		return append(b, name...)
	}
	if p.form == formWindowRank {
		comm = n.commOfWindow(otf2.RmaWinRef(comm))
	}
	return n.appendRank(b, at, comm, rank)
}

// appendTime writes a time, with an epoch the signed distance from it.
func appendTime(b []byte, t, epoch uint64) []byte {
	if t == uint64(otf2.UndefinedTimestamp) {
		return append(b, "UNDEFINED"...)
	}
	if epoch != 0 {
		return strconv.AppendInt(b, int64(t-epoch), 10)
	}
	return strconv.AppendUint(b, t, 10)
}
