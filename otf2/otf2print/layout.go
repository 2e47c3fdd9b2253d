// SPDX-License-Identifier: Apache-2.0

package otf2print

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/otf2"
)

// eventLayouts gives the text of each event's fields. {field} stands for a field's value by its type: a reference
// with its name, an enumeration by OTF2's name, else a number; {field/other} for a rank in the communicator or
// window that the other field names; {field?} for a number whose undefined value is printed. Metric and ProgramBegin,
// with their repetitions, are written by functions of their own.
var eventLayouts = map[string]string{
	"BufferFlush":      "Stop Time: {stopTime}",
	"MeasurementOnOff": "Mode: {measurementMode}",
	"Enter":            "Region: {region}",
	"Leave":            "Region: {region}",
	"MpiSend": "Receiver: {receiver/communicator}, Communicator: {communicator}, Tag: {msgTag}, Length: " +
		"{msgLength}",
	"MpiIsend": "Receiver: {receiver/communicator}, Communicator: {communicator}, Tag: {msgTag}, Length: " +
		"{msgLength}, Request: {requestID}",
	"MpiIsendComplete": "Request: {requestID}",
	"MpiIrecvRequest":  "Request: {requestID}",
	"MpiRecv": "Sender: {sender/communicator}, Communicator: {communicator}, Tag: {msgTag}, Length: " +
		"{msgLength}",
	"MpiIrecv": "Sender: {sender/communicator}, Communicator: {communicator}, Tag: {msgTag}, Length: " +
		"{msgLength}, Request: {requestID}",
	"MpiRequestTest":      "Request: {requestID}",
	"MpiRequestCancelled": "Request: {requestID}",
	"MpiCollectiveBegin":  "",
	"MpiCollectiveEnd": "Operation: {collectiveOp}, Communicator: {communicator}, Root: {root/communicator}, " +
		"Sent: {sizeSent}, Received: {sizeReceived}",
	"OmpFork":         "# Requested Threads: {numberOfRequestedThreads}",
	"OmpJoin":         "",
	"OmpAcquireLock":  "Lock: {lockID}, Acquisition Order: {acquisitionOrder}",
	"OmpReleaseLock":  "Lock: {lockID}, Acquisition Order: {acquisitionOrder}",
	"OmpTaskCreate":   "Task: {taskID}",
	"OmpTaskSwitch":   "Task: {taskID}",
	"OmpTaskComplete": "Task: {taskID}",

	"ParameterString":      "Parameter: {parameter}, Value: {string}",
	"ParameterInt":         "Parameter: {parameter}, Value: {value}",
	"ParameterUnsignedInt": "Parameter: {parameter}, Value: {value}",

	"RmaWinCreate":       "Window: {win}",
	"RmaWinDestroy":      "Window: {win}",
	"RmaCollectiveBegin": "",
	"RmaCollectiveEnd": "Operation: {collectiveOp}, Window: {win}, Level of Synchronicity: {syncLevel}, " +
		"Root: {root/win}, Sent: {bytesSent}, Received: {bytesReceived}",
	"RmaGroupSync":   "Level of Synchronicity: {syncLevel}, Window: {win}, Group: {group}",
	"RmaRequestLock": "Window: {win}, Remote: {remote/win}, Lock: {lockId}, Type: {lockType}",
	"RmaAcquireLock": "Window: {win}, Remote: {remote/win}, Lock: {lockId}, Type: {lockType}",
	"RmaTryLock":     "Window: {win}, Remote: {remote/win}, Lock: {lockId}, Type: {lockType}",
	"RmaReleaseLock": "Window: {win}, Remote: {remote/win}, Lock: {lockId}",
	"RmaSync":        "Window: {win}, Remote: {remote/win}, Sync Type: {syncType}",
	"RmaWaitChange":  "Window: {win}",
	"RmaPut":         "Window: {win}, Remote: {remote/win}, Bytes: {bytes}, Matching: {matchingId}",
	"RmaGet":         "Window: {win}, Remote: {remote/win}, Bytes: {bytes}, Matching: {matchingId}",
	"RmaAtomic": "Window: {win}, Remote: {remote/win}, Type: {type}, Sent: {bytesSent}, Received: " +
		"{bytesReceived}, Matching: {matchingId}",
	"RmaOpCompleteBlocking":    "Window: {win}, Matching: {matchingId}",
	"RmaOpCompleteNonBlocking": "Window: {win}, Matching: {matchingId}",
	"RmaOpTest":                "Window: {win}, Matching: {matchingId}",
	"RmaOpCompleteRemote":      "Window: {win}, Matching: {matchingId}",

	"ThreadFork":        "Model: {model}, # Requested Threads: {numberOfRequestedThreads}",
	"ThreadJoin":        "Model: {model}",
	"ThreadTeamBegin":   "Thread Team: {threadTeam}",
	"ThreadTeamEnd":     "Thread Team: {threadTeam}",
	"ThreadAcquireLock": "Model: {model}, Lock: {lockID}, Acquisition Order: {acquisitionOrder}",
	"ThreadReleaseLock": "Model: {model}, Lock: {lockID}, Acquisition Order: {acquisitionOrder}",
	"ThreadTaskCreate": "Thread Team: {threadTeam}, Creating Thread: {creatingThread/threadTeam}, Generation " +
		"Number: {generationNumber}",
	"ThreadTaskSwitch": "Thread Team: {threadTeam}, Creating Thread: {creatingThread/threadTeam}, Generation " +
		"Number: {generationNumber}",
	"ThreadTaskComplete": "Thread Team: {threadTeam}, Creating Thread: {creatingThread/threadTeam}, Generation " +
		"Number: {generationNumber}",
	"ThreadCreate": "Thread Contingent: {threadContingent}, Sequence Count: {sequenceCount}",
	"ThreadBegin":  "Thread Contingent: {threadContingent}, Sequence Count: {sequenceCount}",
	"ThreadWait":   "Thread Contingent: {threadContingent}, Sequence Count: {sequenceCount}",
	"ThreadEnd":    "Thread Contingent: {threadContingent}, Sequence Count: {sequenceCount}",

	"CallingContextEnter": "Calling Context: {callingContext}, Unwind Distance: {unwindDistance?}",
	"CallingContextLeave": "Calling Context: {callingContext}",
	"CallingContextSample": "Calling Context: {callingContext}, Unwind Distance: {unwindDistance?}, Interrupt " +
		"Generator: {interruptGenerator}",

	"IoCreateHandle": "Handle: {handle}, Access Mode: {mode}, Creation Flags: {creationFlags}, Status Flags: " +
		"{statusFlags}",
	"IoDestroyHandle":   "Handle: {handle}",
	"IoDuplicateHandle": "Old Handle: {oldHandle}, New Handle: {newHandle}, Status Flags: {statusFlags}",
	"IoSeek": "Handle: {handle}, Offset Request: {offsetRequest}, Whence: {whence}, Offset Result: " +
		"{offsetResult}",
	"IoChangeStatusFlags": "Handle: {handle}, Status Flags: {statusFlags}",
	"IoDeleteFile":        "I/O Paradigm: {ioParadigm}, File: {file}",
	"IoOperationBegin": "Handle: {handle}, Mode: {mode}, Operation Flags: {operationFlags}, Bytes Request: " +
		"{bytesRequest}, Matching Id: {matchingId}",
	"IoOperationTest":      "Handle: {handle}, Matching Id: {matchingId}",
	"IoOperationIssued":    "Handle: {handle}, Matching Id: {matchingId}",
	"IoOperationComplete":  "Handle: {handle}, Bytes Result: {bytesResult}, Matching Id: {matchingId}",
	"IoOperationCancelled": "Handle: {handle}, Matching Id: {matchingId}",
	"IoAcquireLock":        "Handle: {handle}, Type: {lockType}",
	"IoReleaseLock":        "Handle: {handle}, Type: {lockType}",
	"IoTryLock":            "Handle: {handle}, Type: {lockType}",
	"ProgramEnd":           "Exit status: {exitStatus}",

	"NonBlockingCollectiveRequest": "Request: {requestID}",
	"NonBlockingCollectiveComplete": "Operation: {collectiveOp}, Communicator: {communicator}, Root: " +
		"{root/communicator}, Sent: {sizeSent}, Received: {sizeReceived}, Request: {requestID}",
	"CommCreate":  "Communicator: {communicator}",
	"CommDestroy": "Communicator: {communicator}",

	// The space before the colon is otf2-print 3.2's.
	"MpiProbe": "Sender: {sender/communicator}, Communicator : {communicator}, Tag: {tag}, Message: " +
		"{messageId}",
	"MpiMrecv":         "Message: {messageId}, Length: {msgLength}",
	"MpiImrecvRequest": "Message: {messageId}, Request: {requestId}",
	"MpiImrecv":        "Request: {requestId}, Length: {msgLength}",

	"SnapshotStart": "# Events: {numberOfRecords}",
	"SnapshotEnd":   "Cont. Read Position: {contReadPos}",
}

// eventNames lists the records that otf2-print calls otherwise than libotf2.
var eventNames = map[string]string{
	"ParameterInt": "PARAMETER_INT64", "ParameterUnsignedInt": "PARAMETER_UINT64",
	"IoChangeStatusFlags": "IO_CHANGE_FLAGS",
}

// layout is a prepared event layout.
type layout struct {
	name   string
	pieces []piece
	tail   string // text behind the last piece
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
// application's, 3.0 that of the exit status alone.
func wordsOf(record string, f *otf2.Field, as otf2.Version) []word {
	switch {
	case record == "ProgramEnd":
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
	formMaybe // a number, UNDEFINED if all its bits are set
	formTime
	formRef
	formEnum
	formFlags
	formParadigm
	formRank
	formWindowRank
)

// newLayout prepares the layout of a record with these fields, in the form of a version.
func newLayout(record, upper string, fields []otf2.Field, as otf2.Version) *layout {
	l := &layout{name: upper}
	if name, ok := eventNames[record]; ok {
		l.name = name
	}
	find := func(name string) int {
		for i := range fields {
			if fields[i].Name == name {
				return i
			}
		}
		panic(fmt.Sprintf("otf2print: layout of %s: no field %q", record, name))
	}
	text := eventLayouts[record]
	for {
		literal, rest, ok := strings.Cut(text, "{")
		if !ok {
			l.tail = literal
			return l
		}
		name, rest, _ := strings.Cut(rest, "}")
		name, other, ranked := strings.Cut(name, "/")
		name, maybe := strings.CutSuffix(name, "?")
		arg := find(name)
		f := &fields[arg]
		p := pieceOf(f)
		p.text, p.arg = literal, arg
		if p.form == formNumber || p.form == formSigned {
			p.words = wordsOf(record, f, as)
		}
		switch {
		case ranked:
			p.other = find(other)
			p.form = formRank
			if fields[p.other].Type == "RmaWinRef" {
				p.form = formWindowRank
			}
			p.roots = f.Type == "CollectiveRoot"
		case maybe:
			p.form = formMaybe
		}
		l.pieces = append(l.pieces, p)
		text = rest
	}
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
	return append(b, l.tail...)
}

// append writes a field by its form.
func (p *piece) append(b []byte, n *names, at otf2.LocationRef, args []uint64) []byte {
	switch v := args[p.arg]; p.form {
	case formSigned:
		return strconv.AppendInt(b, int64(v), 10)
	case formMaybe:
		if uint32(v) == 1<<32-1 {
			return append(b, "UNDEFINED"...)
		}
		return strconv.AppendUint(b, v, 10)
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
