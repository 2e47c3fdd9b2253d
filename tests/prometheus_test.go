// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// lint is promtool's exit code where metrics are right, but not as it would name them: Inspector's names say
// microseconds.
const lint = 3

var inspectorUnits = regexp.MustCompile(
	`^nccl_(collective|p2p)_exec_time_microseconds use base unit "seconds" instead of "microseconds"\n$`)

// A real Prometheus takes the metrics of two jobs as it takes those of node exporters, and what the dashboard of
// docs/grafana.json shows has values.
func TestDashboard(t *testing.T) {
	t.Parallel()
	tools, err := filepath.Abs("../build/tools/prometheus")
	testkit.Must(t, err)
	_, err = os.Stat(filepath.Join(tools, "fetched"))
	need.NoError(t, "Prometheus (make setup)", err)
	metrics := make(map[string][][]byte) // by job, one after the other
	for job, name := range map[string]string{"1": "09-straggler-4p", "2": "05-p2p-3p"} {
		dir, _ := play(t, recording(t, name))
		out := testkit.Value(exec.Command(builtFile(t, "nccl-otf2"), "export", "--prometheus", "--job", job, "-o", "-",
			dir).Output())(t)
		metrics[job] = [][]byte{out}
	}
	metrics["3"] = metricsOfRestartedJob(t)
	for _, texts := range metrics {
		for _, text := range texts {
			lintMetrics(t, tools, text)
		}
	}
	var later atomic.Bool
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		texts := metrics[strings.TrimPrefix(r.URL.Path, "/")]
		if later.Load() {
			texts = texts[len(texts)-1:]
		}
		_, _ = w.Write(texts[0])
	}))
	defer served.Close()
	prometheus := startPrometheus(t, tools, strings.TrimPrefix(served.URL, "http://"), "1", "2", "3")
	later.Store(true)
	for len(prometheus.ask(t, `nccl_otf2_operations_total{slurm_job_id="3"} == 48`)) < 4 {
		time.Sleep(50 * time.Millisecond)
	}
	board := readDashboard(t)
	for _, v := range board.Templating.List {
		if v.Type != "query" {
			continue
		}
		metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Query, "label_values("), ")"), ", ")
		testkit.Check(t, len(prometheus.ask(t, fmt.Sprintf("count by (%s) (%s)", label, metric))) != 0,
			"variable %s has no values", v.Name)
	}
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$node", ".*", "$communicator",
				".*").Replace(target.Expr)
			testkit.Check(t, !strings.Contains(expr, "$"),
				"%s: %s has a variable that the dashboard has not", p.Title, expr)
			asked++
			testkit.Check(t, len(prometheus.ask(t, expr)) != 0, "%s: %s has no value", p.Title, expr)
		}
	}
	testkit.Check(t, asked >= 10, "%d expressions", asked)
	named := prometheus.ask(t, `nccl_otf2_culprit_share{slurm_job_id="1"}`)
	testkit.Check(t, len(named) == 1 && named[0]["rank"] == "Rank 2" && named[0]["kind"] == "host_late",
		"the straggler's job names %v", named)
}

// lintMetrics has promtool look at metrics.
func lintMetrics(t *testing.T, tools string, text []byte) {
	t.Helper()
	check := exec.Command(filepath.Join(tools, "promtool"), "check", "metrics")
	check.Stdin = bytes.NewReader(text)
	said, err := check.CombinedOutput()
	for line := range strings.Lines(string(said)) {
		testkit.Check(t, inspectorUnits.MatchString(line), "promtool check metrics: %s", line)
	}
	testkit.Check(t, err == nil || check.ProcessState.ExitCode() == lint, "promtool check metrics: %v", err)
}

// metricsOfRestartedJob gives the metrics of a job in profile mode after its processes ended, and after they were
// started anew in the same directory and ended again.
func metricsOfRestartedJob(t *testing.T) (texts [][]byte) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "job")
	for range 2 {
		cmd := exec.Command(builtFile(t, "nccl-otf2"), "replay", "../testdata/nccl-callbacks/09-straggler-4p",
			"--clock", "recorded", "--dir", dir)
		cmd.Env = append(os.Environ(), "NCCL_OTF2_MODE=profile")
		testkit.Output(t, cmd)
		texts = append(texts, keptMetrics(t, dir, "3"))
	}
	return texts
}

// keptMetrics is what is kept of a directory's jobs once they have ended, until whoever keeps it is interrupted: then
// the file is gone.
func keptMetrics(t *testing.T, dir, job string) []byte {
	t.Helper()
	folder := t.TempDir()
	keep := exec.Command(builtFile(t, "nccl-otf2"), "export", "--prometheus", "--every", "1m", "--job", job, "-o",
		folder, dir)
	var said bytes.Buffer
	keep.Stderr = &said
	testkit.Must(t, keep.Start())
	ended := make(chan error, 1)
	go func() { ended <- keep.Wait() }()
	text := metricsIn(t, folder, "nccl_otf2_job_running{.*} 0\n", ended)
	testkit.Must(t, keep.Process.Signal(os.Interrupt))
	err := <-ended
	testkit.Check(t, err == nil, "export --every: %v: %s", err, said.String())
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("%s is left", left[0].Name())
	}
	return text
}

// metricsIn waits for a file of metrics in which something stands.
func metricsIn(t *testing.T, folder, pattern string, ended <-chan error) []byte {
	t.Helper()
	want := regexp.MustCompile(pattern)
	for {
		names, _ := filepath.Glob(filepath.Join(folder, "*.prom"))
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil && want.Match(text) {
				return text
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("nobody keeps the metrics any more: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// passing are the lines of metrics that differ between directories, and from moment to moment.
var passing = regexp.MustCompile(`(?m)^nccl_otf2_written_timestamp_seconds.*\n|,?directory="[^"]*"`)

// While a job runs, a trace gives the same metrics as a profile: the counters, what waits are estimated, and whom they
// were for.
func TestMetricsOfTracesAndProfiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"09-straggler-4p", "05-p2p-3p", "06-twohosts-2x2"} {
		of := make(map[string]string)
		for _, mode := range []string{"trace", "profile"} {
			dir := filepath.Join(t.TempDir(), mode)
			cmd := exec.Command(builtFile(t, "nccl-otf2"), "replay", "../testdata/nccl-callbacks/"+name, "--clock",
				"recorded", "--dir", dir)
			cmd.Env = append(os.Environ(), "NCCL_OTF2_MODE="+mode)
			testkit.Output(t, cmd)
			of[mode] = passing.ReplaceAllString(string(keptMetrics(t, dir, "1")), "")
		}
		testkit.Check(t, of["trace"] == of["profile"],
			"%s: of the trace\n%s\nof the profile\n%s", name, of["trace"], of["profile"])
		testkit.Contains(t, of["trace"], "nccl_otf2_operations_total{")
	}
}

// One setting has the metrics of a job kept: by the first rank, in a file that is replaced, and that goes with the job.
func TestMetricsBySetting(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"trace", "profile"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			keptBySetting(t, mode)
		})
	}
}

func keptBySetting(t *testing.T, mode string) {
	t.Helper()
	dir, folder := filepath.Join(t.TempDir(), "job"), t.TempDir()
	stale := filepath.Join(folder, "nccl-otf2-gone-00000000.prom")
	testkit.Write(t, stale, []byte("# of a job whose node failed\n"))
	testkit.Must(t, os.Chtimes(stale, time.Time{}, time.Now().Add(-time.Hour)))
	others := filepath.Join(folder, "other.prom")
	testkit.Write(t, others, nil)
	testkit.Must(t, os.Chtimes(others, time.Time{}, time.Now().Add(-time.Hour)))
	cmd := exec.Command(builtFile(t, "nccl-otf2"), "replay", "../testdata/nccl-callbacks/09-straggler-4p", "--clock",
		"recorded", "--dir", dir)
	cmd.Env = append(os.Environ(), "NCCL_OTF2_MODE="+mode, "NCCL_OTF2_PROMETHEUS="+folder, "SLURM_JOB_ID=77")
	seen := make(chan []byte, 1)
	go func() {
		seen <- metricsIn(
			t, folder,
			`nccl_otf2_operations_total{slurm_job_id="77",.*rank="Rank 2"} 24\n(?s:.*)nccl_otf2_job_running{.*} 0\n`,
			nil)
	}()
	testkit.Output(t, cmd)
	<-seen
	_, err := os.Stat(stale)
	testkit.Check(t, errors.Is(err, fs.ErrNotExist), "%s: the file of a job that is gone: %v", mode, err)
	testkit.Value(os.Stat(others))(t)
	names, _ := filepath.Glob(filepath.Join(folder, "nccl-otf2-*.prom"))
	testkit.Require(t, len(names) == 1, "%s: %q", mode, names)
	testkit.Must(t, os.Remove(names[0])) // whoever keeps it ends: somebody else has taken it
}

type dashboard struct {
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text := testkit.Read(t, "../docs/grafana.json")
	var board dashboard
	testkit.Must(t, json.Unmarshal(text, &board))
	return &board
}

// server is a Prometheus that runs for a test.
type server struct{ address string }

// startPrometheus has a Prometheus scrape some paths of an address, and waits until it has all of them.
func startPrometheus(t *testing.T, tools, address string, paths ...string) *server {
	t.Helper()
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s}\nscrape_configs:\n"
	for _, p := range paths {
		config += fmt.Sprintf(
			"- {job_name: job%s, metrics_path: /%s, honor_labels: true, static_configs: [{targets: [%q]}]}\n", p, p,
			address)
	}
	file := filepath.Join(dir, "prometheus.yml")
	testkit.Write(t, file, []byte(config))
	said, err := exec.Command(filepath.Join(tools, "promtool"), "check", "config", file).CombinedOutput()
	testkit.Require(t, err == nil, "promtool check config: %v: %s", err, said)
	for {
		if s := tryPrometheus(t, tools, dir, file, len(paths)); s != nil {
			return s
		}
	}
}

// tryPrometheus starts it at a port that was free; nil: another program has taken that.
func tryPrometheus(t *testing.T, tools, dir, config string, targets int) *server {
	t.Helper()
	free := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &server{free.Addr().String()}
	testkit.Must(t, free.Close())
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(tools, "prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.address)
	cmd.Stdout, cmd.Stderr = &log, &log
	testkit.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			if strings.Contains(log.String(), "address already in use") {
				return nil
			}
			t.Fatalf("Prometheus ended: %v: %s", err, log.String())
		case <-time.After(50 * time.Millisecond):
		}
		if r, err := http.Get("http://" + s.address + "/-/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK && len(s.ask(t, "up == 1")) == targets {
				t.Cleanup(func() {
					_ = cmd.Process.Kill()
					<-ended
				})
				return s
			}
		}
	}
}

// ask evaluates an expression, and gives the labels of what has a value that is a number.
func (s *server) ask(t *testing.T, expr string) (found []map[string]string) {
	t.Helper()
	r := testkit.Value(http.Get("http://" + s.address + "/api/v1/query?query=" + url.QueryEscape(expr)))(t)
	defer r.Body.Close()
	text := testkit.Value(io.ReadAll(r.Body))(t)
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	testkit.Must(t, json.Unmarshal(text, &answer))
	testkit.Equal(t, answer.Status, "success", "%s: %s", expr, answer.Error)
	for _, one := range answer.Data.Result {
		if v := one.Value[1]; v != "NaN" && v != "+Inf" {
			found = append(found, one.Metric)
		}
	}
	return found
}
