// SPDX-License-Identifier: Apache-2.0

package timeservice

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// answered is what chronyd 4.3 answered. chronyc said some milliseconds before: 0.000001166 seconds fast of NTP time,
// root delay 0.000005306.
const answered = "060200000021000500000000000000001234567800000000000000007f0000017f0000010000000000000000000000000001000000060000000000006b07410126b5bfbc" +
	"dd668278ccc95628d4bc53abf6a70b63ea8d2ca5faac9c61e0b20a31d8bb9e130088fcfc"

// serve answers one question with what change makes of chronyd's answer.
func serve(t *testing.T, change func(answer []byte) []byte) net.Conn {
	t.Helper()
	server := testkit.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { server.Close() })
	answer := testkit.Value(hex.DecodeString(answered))(t)
	go func() {
		question := make([]byte, 1024)
		n, from, err := server.ReadFrom(question)
		if err != nil || n < len(answer) || question[0] != 6 || question[1] != 1 ||
			binary.BigEndian.Uint16(question[4:]) != 33 {
			return
		}
		copy(answer[16:20], question[8:12])
		_, _ = server.WriteTo([]byte("not this one, which is of somebody else"), from)
		_, _ = server.WriteTo(change(answer), from)
	}()
	conn := testkit.Value(net.Dial("udp", server.LocalAddr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestChronyIsUnderstood(t *testing.T) {
	got, err := Ask(serve(t, func(a []byte) []byte { return a }), 77, time.Minute)
	testkit.Check(t, err == nil && got == (Answer{Ahead: 1_144, Bound: 3_003}), "%+v, %v", got, err)
}

// What chronyd does not know, what it refuses, and what is cut off is nothing.
func TestAnswersThatAreNone(t *testing.T) {
	set := func(at int, v byte) func([]byte) []byte {
		return func(a []byte) []byte { a[at] = v; return a }
	}
	for name, c := range map[string]struct {
		change func([]byte) []byte
		want   error // nil: any
	}{
		"unsynchronized": {set(55, 3), errUnsynchronized},
		"own clock":      {func(a []byte) []byte { copy(a[28:], []byte{127, 127, 1, 1}); return a }, errLocal},
		"refused":        {set(9, 2), nil},
		"another answer": {set(7, 6), nil},
		"cut off":        {func(a []byte) []byte { return a[:100] }, nil},
		"another time":   {set(0, 5), nil},
		"nonsense":       {set(96, 0x60), nil},
	} {
		got, err := Ask(serve(t, c.change), 1, time.Minute)
		testkit.Check(t, err != nil && (c.want == nil || errors.Is(err, c.want)), "%s: %+v, %v", name, got, err)
	}
}

// Where nothing listens that is said at once, or after the time that is given.
func TestNobodyAnswers(t *testing.T) {
	server := testkit.Value(net.ListenPacket("udp", "127.0.0.1:0"))(t)
	defer server.Close()
	conn := testkit.Value(net.Dial("udp", server.LocalAddr().String()))(t)
	defer conn.Close()
	got, err := Ask(conn, 1, time.Millisecond)
	testkit.Check(t, err != nil, "%+v", got)
}

func FuzzParse(f *testing.F) {
	answer := testkit.Value(hex.DecodeString(answered))(f)
	f.Add(answer)
	f.Add(answer[:30])
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parse(b)
		testkit.Check(t, err != nil || a.Bound >= 0, "%+v", a)
	})
}
