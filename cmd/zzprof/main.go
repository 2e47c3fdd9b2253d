package main

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/nccl-otf2/nccl-otf2/otf2"
	"github.com/nccl-otf2/nccl-otf2/timeline"
)

func main() {
	mem, _ := strconv.Atoi(os.Getenv("MEM"))
	if os.Args[2] != "serve" {
		f, _ := os.Create(os.Args[2])
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	t := time.Now()
	a, err := otf2.Open(os.Args[1], &otf2.ReadOptions{Nanoseconds: true, Memory: mem << 20})
	if a == nil {
		panic(err)
	}
	fmt.Println("open", time.Since(t))
	t = time.Now()
	d, err := timeline.Read(a, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("read", time.Since(t))
	t = time.Now()
	s, err := d.NewServer(timeline.Options{Title: "x", Tool: "y"})
	if err != nil {
		panic(err)
	}
	fmt.Println("server", time.Since(t))
	if os.Args[2] != "serve" {
		return
	}
	l, _ := s.Listen(0)
	go s.Serve(l)
	fmt.Println(s.URL())
	at, _ := url.Parse(s.URL())
	_ = httptest.NewRecorder
	rp := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: at.Host, Path: at.Path})
		r.Out.Host = at.Host
	}}
	http.ListenAndServe("127.0.0.1:18180", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			rp.ServeHTTP(w, r)
			return
		}
		page, _ := os.ReadFile("timeline/asset/page.html")
		prog, _ := os.ReadFile("timeline/asset/page.js")
		var b bytes.Buffer
		fw, _ := flate.NewWriter(&b, 6)
		fw.Write(prog)
		fw.Close()
		page = bytes.Replace(page, []byte("<!--program-->"), []byte(`<script type="application/octet-stream" id="program">`+base64.StdEncoding.EncodeToString(b.Bytes())+"</script>"), 1)
		page = bytes.Replace(page, []byte("connect-src 'none'"), []byte("connect-src 'self'"), 1)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(page)
	}))
}
