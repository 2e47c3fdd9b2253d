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

// Server serves the page and, on request, its data, to clients that know the token. Until Fill has filled it, it serves
// a page that shows the progress of reading and then changes to the timeline.
type Server struct {
	news
	token   string
	hosts   []string // names accepted in requests
	waiting []byte   // the page until the timeline is ready

	// Set by Fill.
	page   []byte
	head   []byte
	temp   temp
	spool  spool
	blocks []extent
}

// NewServer returns a server without data. title is the page's title.
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

// Fill writes the blocks to a temporary file, which Close removes, and starts serving the page. It passes its error to
// Fail, too.
func (s *Server) Fill(d *Data, o Options) error {
	err := s.writeTimeline(d, &o)
	s.endWaiting(err)
	return err
}

// Fail shows waiting pages why there is no timeline.
func (s *Server) Fail(err error) { s.endWaiting(err) }

func (s *Server) writeTimeline(d *Data, o *Options) error {
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

// Close removes the temporary file of the blocks.
func (s *Server) Close() error {
	s.spool.close()
	return nil
}

func (s *Server) block(packed []byte) error {
	s.blocks = append(s.blocks, s.spool.write(packed))
	return s.temp.failed()
}

// Listen opens a port that only this machine can reach. port 0: any free one.
func (s *Server) Listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	at := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	s.hosts = []string{"127.0.0.1:" + at, "localhost:" + at}
	return l, nil
}

// URL is the address of the page.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/" + s.token + "/" }

// Serve answers requests until the listener is closed.
func (s *Server) Serve(l net.Listener) error {
	server := http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 1 << 14}
	err := server.Serve(l)
	if s.failed() != nil { // clients may still wait for the page: they receive the error
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
	}
	return err
}

// mostAtOnce is the greatest number of blocks per request; page/src/source.ts has the same.
const mostAtOnce = 64

// readBlocks returns the blocks of a list of numbers one after the other, each preceded by its length: four bytes, the
// lowest first. They are uncompressed, because starting decompression of each block in a browser takes as long as
// sending many. The status is http.StatusNotFound if a block does not exist or the list is too long.
func (s *Server) readBlocks(list string) (body []byte, status int) {
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
		out.Write(make([]byte, 4)) // placeholder for the length
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

// ServeHTTP answers GET /TOKEN/, /TOKEN/head, /TOKEN/blocks/N,N… and, for waiting pages, /TOKEN/progress/N. A request
// for another Host is refused: it comes from a page of another site whose name resolves to this address.
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
	kind, body, status := s.respond(r, path)
	if status >= http.StatusBadRequest {
		http.Error(w, http.StatusText(status), status)
		return
	}
	h.Set("Content-Type", kind)
	h.Set("Content-Length", fmt.Sprint(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // the client may have gone
	}
}

// patience is how long a request for the page waits for a short archive before it gets the waiting page.
const patience = 300 * time.Millisecond

const (
	kindPage = "text/html; charset=utf-8"
	kindData = "application/octet-stream"
	kindNews = "application/json"
)

// respond returns the content of a path below the token. Requests for data wait until there are data; instead of the
// page, the waiting page comes with http.StatusAccepted.
func (s *Server) respond(r *http.Request, path string) (kind string, body []byte, status int) {
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
		body, status = s.readBlocks(rest)
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
