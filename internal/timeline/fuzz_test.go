// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/otf2/otf2test"
)

// FuzzRead: whatever stands in an archive, it is refused, or makes blocks that the page can read.
func FuzzRead(f *testing.F) {
	otf2test.Fuzz(f, []string{makeJob(f)}, readAndShow)
}

func readAndShow(t *testing.T, anchor string) {
	a, err := otf2.Open(anchor, nil)
	if a == nil {
		testkit.Require(t, err != nil, "neither archive nor error")
		return
	}
	defer a.Close()
	d, err := Read(a, nil)
	if err != nil {
		return
	}
	defer d.Close()
	show(t, d)
}

func TestUndefinedLocations(t *testing.T) {
	otf2test.EachWithoutLocation(t, makeJob(t), readAndShow)
}

// FuzzRequests: whatever is asked of the server, it answers by its rules, with nothing but the page, its head and its
// blocks, and to nobody who does not know the token. HOST and TOKEN in a request stand for the server's own.
func FuzzRequests(f *testing.F) {
	for _, line := range []string{
		"GET /TOKEN/", "HEAD /TOKEN/", "GET /TOKEN", "GET /", "GET /TOKEN/head", "HEAD /TOKEN/head",
		"GET /TOKEN/head?a=b&c=%zz#d",
		"GET /TOKEN/blocks/0", "HEAD /TOKEN/blocks/1", "GET /TOKEN/blocks/007,1,0", "GET /TOKEN/blocks/-1",
		"GET /TOKEN/blocks/99999999999999999999",
		"GET /TOKEN/blocks/", "GET /TOKEN/blocks/0,", "GET /TOKEN/blocks/0/../../head", "GET /TOKEN%2fhead",
		"GET //TOKEN/head", "GET /%2e%2e/etc/passwd",
		"GET http://HOST/TOKEN/head", "GET http://elsewhere/TOKEN/head", "POST /TOKEN/head", "OPTIONS *",
		"CONNECT HOST:1", "GET /%00TOKEN/",
	} {
		f.Add([]byte(line + " HTTP/1.1\r\nHost: HOST\r\n\r\n"))
	}
	f.Add([]byte("GET /TOKEN/head HTTP/1.0\r\n\r\n"))
	f.Add([]byte("GET /TOKEN/head HTTP/1.1\r\nHost: elsewhere\r\n\r\n"))
	f.Add([]byte(
		"GET /TOKEN/blocks/0 HTTP/1.1\r\nHost: HOST\r\nRange: bytes=5-1,-7\r\nIf-None-Match: *\r\nContent-Length: " +
			"3\r\n\r\nabc"))
	s := serve(f)
	f.Fuzz(func(t *testing.T, request []byte) {
		request = bytes.ReplaceAll(request, []byte("TOKEN"), []byte(s.token))
		request = bytes.ReplaceAll(request, []byte("HOST"), []byte(s.hosts[0]))
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(request)))
		if err != nil {
			return // net/http answers it
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		status, body := s.answer(t, r)
		testkit.Require(t, w.Code == status, "%s %q at %q: %d, want %d", r.Method, r.URL.Path, r.Host, w.Code, status)
		switch got := w.Body.Bytes(); {
		case status != http.StatusOK && (len(got) > 100 || bytes.Contains(got, []byte(s.token))):
			t.Fatalf("%d tells too much: %q", status, got)
		case status == http.StatusOK && w.Header().Get("Content-Length") != strconv.Itoa(len(body)):
			t.Fatalf("%s bytes, want %d", w.Header().Get("Content-Length"), len(body))
		case status == http.StatusOK && r.Method == http.MethodHead && len(got) > 0:
			t.Fatalf("%d bytes for HEAD", len(got))
		case status == http.StatusOK && r.Method != http.MethodHead && !bytes.Equal(got, body):
			t.Fatalf("%d bytes that are not those of %q", len(got), r.URL.Path)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"X-Frame-Options":              "DENY",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			got := w.Header()[name]
			testkit.Require(t, len(got) == 1 && got[0] == want, "%s is %q", name, got)
		}
	})
}

// blocksOf are blocks with their lengths; nil if one is not there, or there are too many.
func (s *Server) blocksOf(t *testing.T, numbers []string) (body []byte) {
	t.Helper()
	if len(numbers) > mostAtOnce {
		return nil
	}
	for _, number := range numbers {
		digits, found := strings.TrimLeft(number, "0"), false
		for i := range s.blocks {
			if strconv.Itoa(i) == digits || i == 0 && digits == "" && number != "" {
				b := make([]byte, s.blocks[i].size)
				testkit.Value(s.spool.file.ReadAt(b, s.blocks[i].at))(t)
				plain := testkit.Value(io.ReadAll(flate.NewReader(bytes.NewReader(b))))(t)
				body, found = append(binary.LittleEndian.AppendUint32(body, uint32(len(plain))), plain...), true
			}
		}
		if !found {
			return nil
		}
	}
	return body
}

// answer is what a request must be answered with.
func (s *Server) answer(t *testing.T, r *http.Request) (status int, body []byte) {
	t.Helper()
	name, known := strings.CutPrefix(r.URL.Path, "/"+s.token+"/")
	if numbers, ok := strings.CutPrefix(name, "blocks/"); ok {
		body = s.blocksOf(t, strings.Split(numbers, ","))
	} else if known, ok := strings.CutPrefix(name, "progress/"); ok {
		if _, err := strconv.Atoi(known); err == nil {
			body = s.next(t.Context(), -1) // there will be no more of it
		}
	} else if name == "head" {
		body = s.head
	} else if name == "" {
		body = s.page
	}
	switch {
	case r.Host != s.hosts[0] && r.Host != s.hosts[1]:
		return http.StatusMisdirectedRequest, nil
	case r.Method != "GET" && r.Method != "HEAD":
		return http.StatusMethodNotAllowed, nil
	case !known || body == nil:
		return http.StatusNotFound, nil
	}
	return http.StatusOK, body
}
