// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

func serve(t testing.TB) *Server {
	t.Helper()
	s := unfilled(t)
	testkit.Must(t, s.Fill(readJob(t), Options{Title: "job", Tool: "test"}))
	return s
}

// unfilled is a server of which the timeline has not been read.
func unfilled(t testing.TB) *Server {
	t.Helper()
	s := testkit.Value(NewServer("job"))(t)
	t.Cleanup(func() { s.Close() })
	l := testkit.Value(s.Listen(0))(t)
	t.Cleanup(func() { l.Close() })
	ip := l.Addr().(*net.TCPAddr).IP
	testkit.Check(t, ip.IsLoopback(), "listening on %v", ip)
	return s
}

// Only who knows the token gets anything, and only the page, its head and its blocks.
func TestServerAnswers(t *testing.T) {
	s := serve(t)
	at := testkit.Value(url.Parse(s.URL()))(t)
	good := strings.TrimSuffix(at.Path, "/")
	testkit.Require(t, len(good) >= 33, "the token is short: %s", good)
	bad := "/" + strings.Repeat("0", len(good)-1)
	for _, c := range []struct {
		method, path, host string
		want               int
	}{
		{"GET", good + "/", at.Host, 200},
		{"HEAD", good + "/", at.Host, 200},
		{"GET", good + "/head", at.Host, 200},
		{"GET", good + "/blocks/0", at.Host, 200},
		{"GET", good + "/", "localhost:" + at.Port(), 200},
		{"GET", good, at.Host, 404},
		{"GET", "/", at.Host, 404},
		{"GET", bad + "/", at.Host, 404},
		{"GET", good[:len(good)-1] + "/", at.Host, 404},
		{"GET", good + "/blocks/999999", at.Host, 404},
		{"GET", good + "/blocks/0,0", at.Host, 200},
		{"GET", good + "/blocks/0,999999", at.Host, 404},
		{"GET", good + "/blocks/0,", at.Host, 404},
		{"GET", good + "/blocks/" + strings.Repeat("0,", mostAtOnce-1) + "0", at.Host, 200},
		{"GET", good + "/blocks/" + strings.Repeat("0,", mostAtOnce) + "0", at.Host, 404},
		{"GET", good + "/blocks/-1", at.Host, 404},
		{"GET", good + "/blocks/../head", at.Host, 404},
		{"GET", good + "/../../etc/passwd", at.Host, 404},
		{"GET", good + "/traces.otf2", at.Host, 404},
		{"POST", good + "/head", at.Host, 405},
		{"GET", good + "/", "attacker.example:" + at.Port(), 421},
		{"GET", good + "/head", "127.0.0.1", 421},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.URL.Path, r.Host = c.path, c.host
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		testkit.Equal(t, w.Code, c.want, "%s %s at %s", c.method, c.path, c.host)
		testkit.Check(t, w.Code == 200 || !bytes.Contains(w.Body.Bytes(), []byte(good[1:])) && w.Body.Len() <= 100,
			"%s %s tells too much: %s", c.method, c.path, w.Body)
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
			"Referrer-Policy": "no-referrer"} {
			testkit.Equal(t, w.Header().Get(name), want, "%s %s: %s", c.method, c.path, name)
		}
	}
}

// What is sent is what a page would have in it.
func TestServerSendsTheBlocks(t *testing.T) {
	s := serve(t)
	get := func(path string) []byte {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path, r.Host = "/"+s.token+path, s.hosts[0]
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len()) {
			t.Fatalf("%s: %d, %s bytes", path, w.Code, w.Header().Get("Content-Length"))
		}
		return w.Body.Bytes()
	}
	testkit.Check(t, bytes.Contains(get("/"), []byte("connect-src 'self'")), "the page cannot ask for its data")
	packed := testkit.Value(io.ReadAll(flate.NewReader(bytes.NewReader(get("/head")))))(t)
	var h head
	testkit.Must(t, json.Unmarshal(packed, &h))
	testkit.Check(t, h.Title == "job" && h.Nodes == len(s.blocks)-1 && h.Blocks == nil,
		"%d blocks, the nodes are %d, title %q", len(s.blocks), h.Nodes, h.Title)
	var want collector
	if _, err := readJob(t).write(&want, nil); err != nil || len(want) != len(s.blocks) {
		t.Fatalf("%d blocks, want %d: %v", len(s.blocks), len(want), err)
	}
	for i := range want {
		other := (i + 3) % len(want)
		got := get(fmt.Sprintf("/blocks/%d,%d", i, other))
		for _, packed := range [][]byte{want[i], want[other]} {
			block := testkit.Value(io.ReadAll(flate.NewReader(bytes.NewReader(packed))))(t)
			length := int(binary.LittleEndian.Uint32(got))
			testkit.Require(t, length == len(block) && bytes.Equal(got[4:4+length], block),
				"blocks %d and %d: %d bytes, want %d", i, other, length, len(block))
			got = got[4+length:]
		}
		testkit.Check(t, len(got) == 0, "%d bytes too many", len(got))
	}
}
