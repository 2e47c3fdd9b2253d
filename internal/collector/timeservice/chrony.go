// SPDX-License-Identifier: Apache-2.0

// Package timeservice asks the time service of this machine how far its clock is from UTC. So far that is chronyd (also
// where it follows a PTP hardware clock): its monitoring protocol, version 6, as of chrony 2.2 (candm.h), needs no
// rights from the machine itself.
package timeservice

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"time"
)

// Chrony is where chronyd listens by default (cmdport).
const Chrony = "127.0.0.1:323"

// Answer is what a time service said of the machine's clock.
type Answer struct {
	Ahead time.Duration // of the clock against UTC
	Bound time.Duration // within which that is true
}

// Errors of services that have nothing to say.
var (
	errUnsynchronized = errors.New("the time service follows no clock")
	errLocal          = errors.New("the time service follows the machine's own clock")
)

// The monitoring protocol: a head, and what is asked for or told. Numbers are big-endian.
const (
	protocol       = 6
	request, reply = 1, 2
	askTracking    = 33
	tellsTracking  = 5

	headSize  = 28
	replySize = 104 // requests are not shorter, so that nobody is sent more than he has sent

	atCommand, atReply, atStatus, atSequence = 4, 6, 8, 16
	atSource, atLeap, atCorrection           = 28, 54, 68
	atRootDelay, atRootDispersion            = 92, 96

	unsynchronized = 3          // leap
	localClock     = 0x7F7F0101 // reference id of "local": 127.127.1.1
)

// Ask asks chronyd once. sequence tells its answer from others.
func Ask(conn net.Conn, sequence uint32, patience time.Duration) (Answer, error) {
	question := make([]byte, replySize)
	question[0], question[1] = protocol, request
	binary.BigEndian.PutUint16(question[atCommand:], askTracking)
	binary.BigEndian.PutUint32(question[8:], sequence)
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return Answer{}, err
	}
	if _, err := conn.Write(question); err != nil {
		return Answer{}, err
	}
	text := make([]byte, 1024)
	for {
		n, err := conn.Read(text)
		if err != nil {
			return Answer{}, err
		}
		if n >= headSize && binary.BigEndian.Uint32(text[atSequence:]) == sequence {
			return parse(text[:n])
		}
	}
}

// parse reads an answer.
func parse(b []byte) (Answer, error) {
	u16 := func(at int) uint16 { return binary.BigEndian.Uint16(b[at:]) }
	switch {
	case len(b) < headSize || b[0] != protocol || b[1] != reply || u16(atCommand) != askTracking:
		return Answer{}, errors.New("that is no answer of chronyd's")
	case u16(atStatus) != 0:
		return Answer{}, fmt.Errorf("chronyd refuses, status %d", u16(atStatus))
	case u16(atReply) != tellsTracking || len(b) < replySize:
		return Answer{}, fmt.Errorf("answer %d of %d bytes", u16(atReply), len(b))
	case u16(atLeap) == unsynchronized:
		return Answer{}, errUnsynchronized
	case binary.BigEndian.Uint32(b[atSource:]) == localClock:
		return Answer{}, errLocal
	}
	// chronyc calls a clock fast whose correction is below 0
	ahead := -number(binary.BigEndian.Uint32(b[atCorrection:]))
	bound := number(binary.BigEndian.Uint32(b[atRootDelay:]))/2 + number(binary.BigEndian.Uint32(b[atRootDispersion:]))
	if math.Abs(ahead) > 1e6 || bound < 0 || bound > 1e6 {
		return Answer{}, fmt.Errorf("%g s ahead, give or take %g s", ahead, bound)
	}
	return Answer{time.Duration(math.Round(ahead * 1e9)), time.Duration(math.Ceil(bound * 1e9))}, nil
}

// number reads chrony's floating point numbers: 7 bits of exponent, 25 of coefficient, both signed.
func number(x uint32) float64 {
	exponent, coefficient := int32(x)>>25, int32(x<<7)>>7
	return math.Ldexp(float64(coefficient), int(exponent)-25)
}
