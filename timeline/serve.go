// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Server gives the page and, as the page asks for them, its data. Who does not know the token gets nothing.
type Server struct {
	token string
	hosts []string // that requests may name
	page  []byte
	head  []byte

	temp   temp
	spool  spool
	blocks []extent
}

// NewServer puts the blocks into a temporary file. Close gives it back.
func (d *Data) NewServer(o Options) (*Server, error) {
	page, err := withProgram()
	if err != nil {
		return nil, err
	}
	s := &Server{page: bytes.Replace(page, connectMark, []byte("connect-src 'self'"), 1)}
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return nil, err
	}
	s.token = hex.EncodeToString(token[:])
	s.spool.temp = &s.temp
	p, err := d.write(s, o.Progress)
	if err != nil {
		s.Close()
		return nil, err
	}
	if s.head, err = d.head(p, &o).packed(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives back what the blocks take of the temporary folder.
func (s *Server) Close() error {
	s.spool.close()
	return nil
}

func (s *Server) block(packed []byte) error {
	s.blocks = append(s.blocks, s.spool.write(packed))
	return s.temp.failed()
}

// Listen opens a port of this machine that no other can reach. port 0: any that is free.
func (s *Server) Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	at := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	s.hosts = []string{"127.0.0.1:" + at, "localhost:" + at}
	return l, nil
}

// URL is where the page is.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/" + s.token + "/" }

// Serve answers requests until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	server := http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 14}
	return server.Serve(l)
}

// mostAtOnce is how many blocks are asked for at once; page/src/source.ts has the same.
const mostAtOnce = 64

// some are the blocks of a list of numbers, one behind the other, each with its length before it: four bytes, the lowest first. The status is
// http.StatusNotFound if one is not there, or there are too many.
func (s *Server) some(list string) (body []byte, status int) {
	numbers := strings.Split(list, ",")
	if len(numbers) > mostAtOnce {
		return nil, http.StatusNotFound
	}
	for _, number := range numbers {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n >= uint64(len(s.blocks)) {
			return nil, http.StatusNotFound
		}
		b := s.blocks[n]
		body = binary.LittleEndian.AppendUint32(body, uint32(b.size))
		from := len(body)
		body = append(body, make([]byte, b.size)...)
		if _, err := s.spool.file.ReadAt(body[from:], b.at); err != nil {
			return nil, http.StatusInternalServerError
		}
	}
	return body, http.StatusOK
}

// ServeHTTP answers GET /TOKEN/, /TOKEN/head and /TOKEN/blocks/N,N…, and nothing else. A request whose Host is not this
// address comes from a page of another site whose name was made to point here, and is refused.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if !slices.Contains(s.hosts, r.Host) {
		http.Error(w, "wrong host", http.StatusMisdirectedRequest)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	token, path, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 || !slash {
		http.NotFound(w, r)
		return
	}
	send := func(kind string, size int64, body io.ReadSeeker) {
		h.Set("Content-Type", kind)
		h.Set("Content-Length", fmt.Sprint(size))
		if r.Method == http.MethodGet {
			_, _ = io.Copy(w, body) // a reader that has gone needs no answer
		}
	}
	numbers, isBlocks := strings.CutPrefix(path, "blocks/")
	switch {
	case path == "":
		send("text/html; charset=utf-8", int64(len(s.page)), bytes.NewReader(s.page))
	case path == "head":
		send("application/octet-stream", int64(len(s.head)), bytes.NewReader(s.head))
	case isBlocks:
		body, status := s.some(numbers)
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		send("application/octet-stream", int64(len(body)), bytes.NewReader(body))
	default:
		http.NotFound(w, r)
	}
}
