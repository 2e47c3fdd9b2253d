// SPDX-License-Identifier: Apache-2.0

// Package bed starts a real Slurm of several nodes on one machine. A node is a slurmd in namespaces of its own: it has
// a name, processes and a boot id as another machine has them, and dies with all its processes at one stroke. Files are
// shared, as on a parallel file system. Only root can do so.
package bed

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/nccl-otf2/nccl-otf2/internal/replay"
)

// needed are the programs that have to be installed (Debian: slurm-wlm, munge; util-linux).
var needed = []string{"slurmctld", "slurmd", "srun", "sbatch", "munged", "unshare"}

// processors is how many each node says that it has.
const processors = 8

// Bed is a Slurm that runs. Its files are in Dir: slurm.conf, log/, and what its daemons keep.
type Bed struct {
	Dir   string
	Nodes []string // names

	nodes  []*exec.Cmd // unshare, which takes its node with it when it dies
	others []*exec.Cmd // in order of their start
	do     chan func() // done by the thread that has started all of them
	ended  chan struct{}
}

// Missing names the programs that are not installed.
func Missing() (names []string) {
	for _, name := range needed {
		if _, err := exec.LookPath(name); err != nil {
			names = append(names, name)
		}
	}
	return names
}

// Start starts a Slurm of n nodes and waits until all are idle. It ends with Close, and with this process.
func Start(ctx context.Context, n int) (*Bed, error) {
	if missing := Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("not installed: %s (Debian: slurm-wlm munge)", strings.Join(missing, ", "))
	}
	dir, err := os.MkdirTemp("", "nccl-otf2-slurm-") // a short path: sockets are in it
	if err != nil {
		return nil, err
	}
	b := &Bed{Dir: dir, do: make(chan func()), ended: make(chan struct{})}
	for k := range n {
		b.Nodes = append(b.Nodes, fmt.Sprintf("node%d", k+1))
	}
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	started := make(chan error)
	go b.hold(started)
	if err = <-started; err == nil {
		err = b.ready(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%w%s", err, b.complaints())
		b.Close()
		return nil, err
	}
	return b, nil
}

// prepare writes the files that the daemons read.
func (b *Bed) prepare() error {
	for _, name := range []string{"log", "run", "state"} {
		if err := os.Mkdir(b.path(name), 0o755); err != nil {
			return err
		}
	}
	key := make([]byte, 1024)
	_, _ = rand.Read(key) // never fails
	if err := os.WriteFile(b.path("munge.key"), key, 0o600); err != nil {
		return err
	}
	ports, err := freePorts(1 + len(b.Nodes))
	if err != nil {
		return err
	}
	for k, node := range b.Nodes {
		if err := os.MkdirAll(b.path(node, "spool"), 0o755); err != nil {
			return err
		}
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x\n", os.Getpid(), k+1)
		if err := os.WriteFile(b.path(node, "boot_id"), []byte(id), 0o444); err != nil {
			return err
		}
	}
	f, err := os.Create(b.path("slurm.conf"))
	if err != nil {
		return err
	}
	return errors.Join(configuration.Execute(f, map[string]any{
		"Dir": b.Dir, "Nodes": b.Nodes, "Ports": ports[1:], "Port": ports[0], "Processors": processors,
	}), f.Close())
}

// cred_expire: a job that is put back into the queue begins only after its old credential has expired.
//
//go:embed slurm.conf.tmpl
var configurationText string

var configuration = template.Must(template.New("slurm.conf").Parse(configurationText))

// freePorts are ports of loopback that nobody listened on a moment ago.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// hold starts the daemons and ends them. They die with the thread that has started them, so it stays.
func (b *Bed) hold(started chan<- error) {
	runtime.LockOSThread()
	defer close(b.ended)
	started <- b.start()
	for f := range b.do {
		f()
	}
	for _, c := range append(b.nodes, b.others...) {
		_ = c.Process.Kill()
	}
	for _, c := range append(b.nodes, b.others...) {
		_ = c.Wait()
	}
}

// node is the first process of a node.
const node = `hostname "$1" && mount --bind "$2/$1/boot_id" /proc/sys/kernel/random/boot_id || exit
slurmd -D -N "$1" &
wait`

func (b *Bed) start() error {
	munge, err := b.daemon("munged", "munged", "--foreground", "--force", "--socket="+b.path("run/munge.socket"),
		"--key-file="+b.path("munge.key"),
		"--pid-file="+b.path("run/munged.pid"), "--log-file="+b.path("log/munge"), "--seed-file="+b.path("run/seed"))
	if err != nil {
		return err
	}
	b.others = append(b.others, munge)
	control, err := b.daemon("slurmctld", "slurmctld", "-D", "-c")
	if err != nil {
		return err
	}
	b.others = append(b.others, control)
	b.nodes = make([]*exec.Cmd, len(b.Nodes))
	for k := range b.Nodes {
		if err := b.startNode(k); err != nil {
			b.nodes = b.nodes[:k]
			return err
		}
	}
	return nil
}

func (b *Bed) startNode(k int) error {
	name := b.Nodes[k]
	c, err := b.daemon(name, "unshare", "--uts", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
		"sh", "-c", node, "node", name, b.Dir)
	b.nodes[k] = c
	return err
}

func (b *Bed) daemon(log, name string, args ...string) (*exec.Cmd, error) {
	f, err := os.Create(b.path("log", log))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := exec.Command(name, args...)
	c.Env = b.Env()
	c.Stdout, c.Stderr = f, f
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c, c.Start()
}

// ready waits until the nodes have told the controller that they are there.
func (b *Bed) ready(ctx context.Context) error {
	for {
		out, err := b.Command(ctx, "sinfo", "--noheader", "--format=%t", "--Node").CombinedOutput()
		if states := strings.Fields(string(out)); err == nil &&
			strings.Join(states, " ") == strings.TrimSpace(strings.Repeat("idle ", len(b.Nodes))) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the nodes do not become idle: %s", strings.TrimSpace(string(out)))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// complaints are the last lines of the daemons' logs.
func (b *Bed) complaints() string {
	var out strings.Builder
	logs, _ := filepath.Glob(b.path("log", "*"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&out, "\n%s: %s", filepath.Base(log), strings.Join(lines[max(0, len(lines)-5):], "\n  "))
	}
	return out.String()
}

// Close ends all of it and removes its files.
func (b *Bed) Close() {
	close(b.do)
	<-b.ended
	_ = os.RemoveAll(b.Dir)
}

// Kill lets a node die with everything that runs on it, and tells the controller, which would notice some minutes
// later.
func (b *Bed) Kill(ctx context.Context, k int) error {
	if err := b.nodes[k].Process.Kill(); err != nil {
		return err
	}
	_ = b.nodes[k].Wait() // says that it was killed
	return b.update(ctx, k, "DOWN")
}

// Revive starts a node that was killed, and waits until all are idle. It has the same boot id, as nobody asks for more.
func (b *Bed) Revive(ctx context.Context, k int) error {
	started := make(chan error)
	b.do <- func() { started <- b.startNode(k) }
	if err := <-started; err != nil {
		return err
	}
	if err := b.update(ctx, k, "RESUME"); err != nil {
		return err
	}
	return b.ready(ctx)
}

func (b *Bed) update(ctx context.Context, k int, state string) error {
	out, err := b.Command(ctx, "scontrol", "update", "NodeName="+b.Nodes[k], "State="+state,
		"Reason=test").CombinedOutput()
	if err != nil {
		return fmt.Errorf("scontrol: %w: %s", err, out)
	}
	return nil
}

// Env is the environment of commands that ask this Slurm, without what says that this process is part of a job.
func (b *Bed) Env() (env []string) {
	for _, kv := range os.Environ() {
		ours := true
		for _, prefix := range []string{"SLURM_", "SBATCH_", "PMI", "OMPI_", "NCCL_", "RANK=", "WORLD_SIZE=",
			"LOCAL_RANK=", "TORCHELASTIC_"} {
			ours = ours && !strings.HasPrefix(kv, prefix)
		}
		if ours {
			env = append(env, kv)
		}
	}
	return append(env, "SLURM_CONF="+b.path("slurm.conf"))
}

// Command is one that asks this Slurm.
func (b *Bed) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = b.Env()
	return c
}

// application is what jobs run. It plays one process of a recording, the one that this task is; the times are the
// recorded ones. With TRAIN_STOP=N it plays in times of its own, and stops (SIGSTOP) after N calls; with
// TRAIN_STOP=never it does not.
//
//go:embed train.sh
var application string

// Application writes the program that jobs run, which plays a recording with the host program of a build, and says
// where it is.
func (b *Bed) Application(build, recording string) (path string, err error) {
	rec, err := replay.Load(recording)
	if err != nil {
		return "", err
	}
	folder := b.path("application")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	for k := range rec.Processes {
		program, err := replay.Compile(rec, k)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("p%d.program", k)), program, 0o644); err != nil {
			return "", err
		}
	}
	path = filepath.Join(folder, "train")
	host := filepath.Base(replay.HostFile)
	return path, errors.Join(os.Symlink(filepath.Join(build, replay.HostFile), filepath.Join(folder, host)),
		os.WriteFile(path, []byte(application), 0o755))
}

func (b *Bed) path(parts ...string) string {
	return filepath.Join(append([]string{b.Dir}, parts...)...)
}
