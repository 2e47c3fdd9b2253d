// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/need"
	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
)

// lint is promtool's exit code where metrics are right, but not as it would name them: Inspector's names say microseconds.
const lint = 3

var inspectorUnits = regexp.MustCompile(`^nccl_(collective|p2p)_exec_time_microseconds use base unit "seconds" instead of "microseconds"\n$`)

// A real Prometheus takes the metrics of two jobs as it takes those of node exporters, and what the dashboard of docs/grafana.json shows
// has values.
func TestDashboard(t *testing.T) {
	t.Parallel()
	tools, err := filepath.Abs("../build/tools/prometheus")
	testkit.Must(t, err)
	_, err = os.Stat(filepath.Join(tools, "fetched"))
	need.NoError(t, "Prometheus (make setup)", err)
	metrics := make(map[string][]byte) // by job
	for job, name := range map[string]string{"1": "09-straggler-4p", "2": "05-p2p-3p"} {
		dir, _ := play(t, recording(t, name))
		out, err := exec.Command(builtFile(t, "nccl-otf2"), "export", "--prometheus", "--job", job, "-o", "-", dir).Output()
		testkit.Must(t, err)
		check := exec.Command(filepath.Join(tools, "promtool"), "check", "metrics")
		check.Stdin = bytes.NewReader(out)
		said, err := check.CombinedOutput()
		for line := range strings.Lines(string(said)) {
			if !inspectorUnits.MatchString(line) {
				t.Errorf("promtool check metrics: %s", line)
			}
		}
		if code := check.ProcessState.ExitCode(); err != nil && code != lint {
			t.Errorf("promtool check metrics: %v", err)
		}
		metrics[job] = out
	}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(metrics[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	defer served.Close()
	prometheus := startPrometheus(t, tools, strings.TrimPrefix(served.URL, "http://"), "1", "2")
	board := readDashboard(t)
	for _, v := range board.Templating.List {
		if v.Type != "query" {
			continue
		}
		metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Query, "label_values("), ")"), ", ")
		if n := len(prometheus.ask(t, fmt.Sprintf("count by (%s) (%s)", label, metric))); n == 0 {
			t.Errorf("variable %s has no values", v.Name)
		}
	}
	asked := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$job", ".*", "$node", ".*", "$communicator", ".*").Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: %s has a variable that the dashboard has not", p.Title, expr)
			}
			asked++
			if len(prometheus.ask(t, expr)) == 0 {
				t.Errorf("%s: %s has no value", p.Title, expr)
			}
		}
	}
	if asked < 10 {
		t.Errorf("%d expressions", asked)
	}
	if named := prometheus.ask(t, `nccl_otf2_culprit_share{slurm_job_id="1"}`); len(named) != 1 || named[0]["rank"] != "Rank 2" || named[0]["kind"] != "host_late" {
		t.Errorf("the straggler's job names %v", named)
	}
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
	text, err := os.ReadFile("../docs/grafana.json")
	testkit.Must(t, err)
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
		config += fmt.Sprintf("- {job_name: job%s, metrics_path: /%s, honor_labels: true, static_configs: [{targets: [%q]}]}\n", p, p, address)
	}
	file := filepath.Join(dir, "prometheus.yml")
	testkit.Write(t, file, []byte(config))
	if said, err := exec.Command(filepath.Join(tools, "promtool"), "check", "config", file).CombinedOutput(); err != nil {
		t.Fatalf("promtool check config: %v: %s", err, said)
	}
	for {
		if s := tryPrometheus(t, tools, dir, file, len(paths)); s != nil {
			return s
		}
	}
}

// tryPrometheus starts it at a port that was free; nil: another program has taken that.
func tryPrometheus(t *testing.T, tools, dir, config string, targets int) *server {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := &server{free.Addr().String()}
	testkit.Must(t, free.Close())
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(tools, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.address)
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
	r, err := http.Get("http://" + s.address + "/api/v1/query?query=" + url.QueryEscape(expr))
	testkit.Must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	testkit.Must(t, err)
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
	if answer.Status != "success" {
		t.Errorf("%s: %s", expr, answer.Error)
	}
	for _, one := range answer.Data.Result {
		if v := one.Value[1]; v != "NaN" && v != "+Inf" {
			found = append(found, one.Metric)
		}
	}
	return found
}
