// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/tests/jobtest"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// ask asks a server for what is behind the token.
func ask(s *Server, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.URL.Path, r.Host = "/"+s.token+path, s.hosts[0]
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// newest is what a page that waits is told, which knows of the news before version.
func newest(t *testing.T, s *Server, version string) (news progress) {
	t.Helper()
	testkit.Must(t, json.Unmarshal(ask(s, "/progress/"+version).Body.Bytes(), &news))
	return news
}

// Before the timeline is there, its page says how far reading is; who asks for data waits for them.
func TestServerTellsHowFarItIs(t *testing.T) {
	s := unfilled(t)
	w := ask(s, "/")
	testkit.Check(t, w.Code == 202 && strings.Contains(w.Body.String(), "progress") &&
		strings.Contains(w.Body.String(), "connect-src 'self'"), "%d: %s", w.Code, w.Body)
	s.Say("Reading events", 3210, 40_000)
	got := newest(t, s, "-1")
	testkit.Check(t, got.Title == "job" && got.What == "Reading events" && got.Done == 3210 && got.Total == 40_000 &&
		!got.Ready && got.Failed == "", "it tells %+v", got)
	waits := make(chan progress)
	go func() { waits <- newest(t, s, "1") }()
	data := make(chan int)
	go func() { data <- ask(s, "/head").Code }()
	testkit.Must(t, s.Fill(readJob(t), Options{Title: "job"}))
	got = <-waits
	testkit.Check(t, got.Ready && got.Failed == "", "it tells %+v", got)
	testkit.Equal(t, <-data, 200, "the head")
	w = ask(s, "/")
	testkit.Check(t, w.Code == 200 && strings.Contains(w.Body.String(), `id="program"`), "%d: no timeline", w.Code)
}

// Why there is no timeline is told to pages that wait, and there are no data.
func TestServerTellsWhyThereIsNothing(t *testing.T) {
	s := unfilled(t)
	waits := make(chan progress)
	go func() { waits <- newest(t, s, "0") }()
	s.Fail(errors.New("no room"))
	got := <-waits
	testkit.Check(t, got.Failed == "no room" && !got.Ready, "it tells %+v", got)
	for path, want := range map[string]int{"/": 202, "/head": 503, "/blocks/0": 503, "/progress/x": 404} {
		w := ask(s, path)
		testkit.Check(t, w.Code == want, "%s: %d, want %d", path, w.Code, want)
	}
}

// Reading reports its activity and the progress in events.
func TestReadingTellsHowFarItIs(t *testing.T) {
	const ranks = 64
	dir := t.TempDir()
	jobtest.WriteTraining(t, dir, ranks, 3)
	a := jobtest.Open(t, jobtest.Unify(t, dir))
	total := uint64(0)
	for i := range a.Defs.Locations {
		total += a.Defs.Locations[i].Events
	}
	var mu sync.Mutex
	most := make(map[string]uint64)
	d, err := ReadTelling(a, nil, func(what string, done, of uint64) {
		mu.Lock()
		defer mu.Unlock()
		testkit.Check(t, done <= of && (of == 0 || of == total), "%s: %d of %d, there are %d", what, done, of, total)
		most[what] = max(most[what], done)
	})
	testkit.Must(t, err)
	d.Close()
	testkit.Check(t, most["Reading events"] >= total/2 && len(most) == 3, "of %d events it tells: %v", total, most)
}
