// SPDX-License-Identifier: Apache-2.0

// Command demo records a job on a Slurm that it starts for this, and asks about it: `make demo-cluster`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nccl-otf2/nccl-otf2/tests/slurm/bed"
)

// limit is far more than the demonstration takes: it is for what hangs.
const limit = 5 * time.Minute

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: demo BUILD RECORDING")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, unix.SIGTERM)
	err := demonstrate(ctx, os.Args[1], os.Args[2])
	stop()
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo-cluster:", err)
		os.Exit(1)
	}
}

func demonstrate(ctx context.Context, build, recording string) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to start nodes that are machines of their own")
	}
	build, err := filepath.Abs(build)
	if err != nil {
		return err
	}
	dir := filepath.Join(build, "demo-cluster")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	fmt.Println("Slurm of three nodes on this machine …")
	b, err := bed.Start(ctx, 3)
	if err != nil {
		return err
	}
	defer b.Close()
	train, err := b.Application(build, recording)
	if err != nil {
		return err
	}
	if err := os.Symlink(train, filepath.Join(dir, "train")); err != nil {
		return err
	}
	defer os.Remove(filepath.Join(dir, "train"))
	steps := []string{
		"sinfo",
		"srun -N 2 --ntasks-per-node 2 nccl-otf2 run --dir exp -- ./train",
		"nccl-otf2 export --parquet exp",
	}
	if _, err := os.Stat(filepath.Join(build, "nccl-otf2-query")); err == nil {
		steps = append(steps,
			"nccl-otf2 query exp waits",
			`nccl-otf2 query exp "SELECT host, rank, count(*) AS operations, sum(size_bytes) AS bytes FROM operations GROUP BY ALL ORDER BY rank"`)
	}
	for _, step := range append(steps, "nccl-otf2 report exp") {
		fmt.Printf("\n$ %s\n", step)
		c := b.Command(ctx, "bash", "-c", step)
		c.Dir, c.Stdout, c.Stderr = dir, os.Stdout, os.Stderr
		c.Env = append(c.Env, "PATH="+build+string(os.PathListSeparator)+os.Getenv("PATH"))
		if err := c.Run(); err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return fmt.Errorf("%s ended with status %d", strings.Fields(step)[0], exit.ExitCode())
			}
			return err
		}
	}
	fmt.Printf("\nIt is in %s\n", filepath.Join(dir, "exp"))
	return nil
}
