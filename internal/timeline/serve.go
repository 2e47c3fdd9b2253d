// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
)

// Server gives the page and, as the page asks for them, its data. Who does not know the token gets nothing. Until Fill
// has filled it, it gives a page that says how far reading is, and shows the timeline as soon as that is there.
type Server struct {
	news
	token   string
	hosts   []string // that requests may name
	waiting []byte   // the page until the timeline is there

	// What Fill makes.
	page   []byte
	head   []byte
	temp   temp
	spool  spool
	blocks []extent
}

// NewServer makes a server that has nothing yet. title is what the page is called.
func NewServer(title string) (*Server, error) {
	s := &Server{waiting: bytes.Replace(waitingAsset, connectMark, connectSelf, 1)}
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return nil, err
	}
	s.token = hex.EncodeToString(token[:])
	s.spool.temp = &s.temp
	s.begin(title)
	return s, nil
}

// Fill puts the blocks into a temporary file, which Close gives back, and lets the page be served. An error is what
// Fail would be told.
func (s *Server) Fill(d *Data, o Options) error {
	err := s.fill(d, &o)
	s.settle(err)
	return err
}

// Fail tells pages that wait why there will be no timeline.
func (s *Server) Fail(err error) { s.settle(err) }

func (s *Server) fill(d *Data, o *Options) error {
	page, err := withProgram()
	if err != nil {
		return err
	}
	s.page = bytes.Replace(page, connectMark, connectSelf, 1)
	p, err := d.write(s, o.Progress)
	if err != nil {
		return err
	}
	s.head, err = d.head(p, o).packed()
	return err
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
	server := http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 1 << 14}
	err := server.Serve(l)
	if s.failed() != nil { // who waits for the page is told so
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}
	return err
}

// mostAtOnce is how many blocks are asked for at once; page/src/source.ts has the same.
const mostAtOnce = 64

// some are the blocks of a list of numbers, one behind the other, each with its length before it: four bytes, the
// lowest first. They are unpacked: a browser takes as long to begin with a block as this takes for many. The status is
// http.StatusNotFound if one is not there, or there are too many.
func (s *Server) some(list string) (body []byte, status int) {
	numbers := strings.Split(list, ",")
	if len(numbers) > mostAtOnce {
		return nil, http.StatusNotFound
	}
	var out bytes.Buffer
	var packed []byte
	unpacker := flate.NewReader(nil)
	for _, number := range numbers {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n >= uint64(len(s.blocks)) {
			return nil, http.StatusNotFound
		}
		packed = slices.Grow(packed[:0], s.blocks[n].size)[:s.blocks[n].size]
		if _, err := s.spool.file.ReadAt(packed, s.blocks[n].at); err != nil {
			return nil, http.StatusInternalServerError
		}
		from := out.Len()
		out.Write(make([]byte, 4)) // the length, which is known in the end
		err = unpacker.(flate.Resetter).Reset(bytes.NewReader(packed), nil)
		if err == nil {
			_, err = out.ReadFrom(unpacker)
		}
		if err != nil {
			return nil, http.StatusInternalServerError
		}
		binary.LittleEndian.PutUint32(out.Bytes()[from:], uint32(out.Len()-from-4))
	}
	return out.Bytes(), http.StatusOK
}

// ServeHTTP answers GET /TOKEN/, /TOKEN/head, /TOKEN/blocks/N,N… and, for pages that wait, /TOKEN/progress/N, and
// nothing else. A request whose Host is not this address comes from a page of another site whose name was made to point
// here, and is refused.
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
	kind, body, status := s.give(r, path)
	if status >= http.StatusBadRequest {
		http.Error(w, http.StatusText(status), status)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a reader that has gone needs no answer
	}
}

// patience is for how long the page waits for an archive that is read at once, before it says that it waits.
const patience = 300 * time.Millisecond

const (
	kindPage = "text/html; charset=utf-8"
	kindData = "application/octet-stream"
	kindNews = "application/json"
)

// give is what is at a path behind the token. Data are waited for; instead of the page, http.StatusAccepted comes with
// one that waits.
func (s *Server) give(r *http.Request, path string) (kind string, body []byte, status int) {
	switch what, rest, _ := strings.Cut(path, "/"); {
	case path == "":
		soon, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		if s.await(soon) {
			return kindPage, s.page, http.StatusOK
		}
		return kindPage, s.waiting, http.StatusAccepted
	case path == "head":
		if !s.await(r.Context()) {
			return "", nil, http.StatusServiceUnavailable
		}
		return kindData, s.head, http.StatusOK
	case what == "blocks":
		if !s.await(r.Context()) {
			return "", nil, http.StatusServiceUnavailable
		}
		body, status = s.some(rest)
		return kindData, body, status
	case what == "progress":
		known, err := strconv.Atoi(rest)
		if err != nil {
			return "", nil, http.StatusNotFound
		}
		return kindNews, s.next(r.Context(), known), http.StatusOK
	}
	return "", nil, http.StatusNotFound
}
