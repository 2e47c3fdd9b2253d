// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nccl-otf2/nccl-otf2/internal/atomicfile"
	"github.com/nccl-otf2/nccl-otf2/internal/experiment"
	"github.com/nccl-otf2/nccl-otf2/internal/export"
	"github.com/nccl-otf2/nccl-otf2/internal/installed"
	"github.com/nccl-otf2/nccl-otf2/internal/printable"
	"github.com/nccl-otf2/nccl-otf2/internal/regular"
	"github.com/nccl-otf2/nccl-otf2/sql"
)

func queryCommand() *cobra.Command {
	form := choice{"table", []string{"table", "csv", "json", "parquet"}}
	var output string
	var list, unsafe bool
	cmd := &cobra.Command{
		Use:   "query DIR… NAME|SQL",
		Short: "Query exported tables: a named question, or any SQL",
		Long: `Queries the tables that "nccl-otf2 export --parquet" wrote, with a named question (see --list) or any SQL that DuckDB
understands. The tables are operations, transfers, waits, phases and runs; docs/tables.md describes them.

DIR is a folder of tables, an experiment directory with its folder parquet, or a folder that contains several of
these. Tables of several runs are read as one; the column run distinguishes the runs. For a recording of NCCL's calls
(NCCL_OTF2_MODE=record), the tables are made on the fly.

SQL is one SELECT that reads these tables and nothing else. With --unsafe, it may be any statements of DuckDB, which can
read and write files, load extensions and use the network with the rights of the user.

DuckDB is part of a separate program, nccl-otf2-query, which lies beside the tool ("make query" builds it). Without
that program, Python can run the same queries: python3 -m nccl_otf2 NAME DIR.`,
		Example: `  nccl-otf2 export --parquet exp1
  nccl-otf2 query exp1 waits
  nccl-otf2 query runs weeks --format csv -o weeks.csv
  nccl-otf2 query exp1 "SELECT function, count(*) FROM operations GROUP BY function" --format json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case list && len(args) > 0:
				return usagef("--list takes no arguments")
			case list:
				listQueries(cmd.OutOrStdout())
				return nil
			case len(args) < 2:
				return usagef("name a folder and a question: nccl-otf2 query DIR NAME; --list lists the questions")
			case form.value == "parquet" && output == "":
				return usagef("--format parquet needs -o FILE")
			}
			return runQuery(cmd, args[:len(args)-1], args[len(args)-1], form.value, output, unsafe)
		},
	}
	addChoice(cmd, &form, "format", "table, csv, json or parquet")
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write (default: standard output)")
	cmd.Flags().BoolVar(&list, "list", false, "list the questions")
	cmd.Flags().BoolVar(&unsafe, "unsafe", false, "let SQL read and write files, load extensions and use the network")
	return cmd
}

func listQueries(w io.Writer) {
	for _, q := range sql.All() {
		printable.Fprintf(w, "%-12s%s\n", q.Name, q.Question)
	}
}

// queryText returns the SQL of a named question, or the argument itself if it is SQL, that is, more than one word.
func queryText(question string) (string, error) {
	if strings.ContainsAny(question, " \t\n") {
		return question, nil
	}
	q, err := sql.Named(question)
	if err != nil {
		return "", usagef("%v", err)
	}
	return q.Text, nil
}

func runQuery(cmd *cobra.Command, dirs []string, question, form, output string, unsafe bool) error {
	text, err := queryText(question)
	if err != nil {
		return err
	}
	var all []string
	inputs := slices.Clone(dirs)
	for _, dir := range dirs {
		folders, err := findTables(dir)
		if err != nil {
			return err
		}
		all = append(all, folders...)
		for _, folder := range folders {
			inputs = append(inputs, regular.Matches(folder, "*"+sql.Suffix)...)
		}
	}
	atomicfile.ProtectInputs(inputs)
	ask := func(output string) error {
		program, err := installed.FindQueryProgram(
			"DuckDB: build it with `make query` and copy it there, or use `python3 -m nccl_otf2 NAME DIR`")
		if err != nil {
			return err
		}
		run := exec.CommandContext(cmd.Context(), program,
			append([]string{"-format", form, "-o", output, fmt.Sprintf("-unsafe=%v", unsafe), "--"}, all...)...)
		run.Stdin, run.Stdout, run.Stderr = strings.NewReader(text), cmd.OutOrStdout(), os.Stderr
		err = run.Run()
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			return exitCode(exitInput) // the program has printed the error
		}
		return err
	}
	if output == "" {
		return ask("")
	}
	f, err := atomicfile.Output(output, regular.File)
	if err != nil {
		return unwritable(err, output, "-o")
	}
	defer f.Abandon()
	if err := ask(f.Name()); err != nil {
		return err
	}
	return f.Commit(atomicfile.Durable)
}

// findTables returns the folders of tables that a path stands for. For a recording of NCCL's calls without tables, it
// makes them in a temporary folder, like the archive that they are exported from.
func findTables(dir string) ([]string, error) {
	if err := requireFolder(dir, "a folder of tables or an experiment directory"); err != nil {
		return nil, err
	}
	// Otherwise the folders may belong to several experiments, whose tables are read together.
	if isDir(filepath.Join(dir, experiment.Folder)) {
		if newest := findNewest(dir, anchorName); newest != "" {
			dir = filepath.Dir(newest) // not the older tables of a single job
		}
	}
	folders, err := sql.Folders(dir)
	if err == nil || len(recordingFolders(dir)) == 0 || hasArchive(dir) {
		return folders, err
	}
	a, err := openArchive(dir)
	if a == nil {
		return nil, err
	}
	defer a.Close()
	if err != nil {
		return nil, err
	}
	into, err := newScratch("nccl-otf2-tables-")
	if err != nil {
		return nil, err
	}
	p := newProgress()
	defer p.clearLine()
	_, err = export.Parquet(a, into, export.Codecs()[0], &export.Options{
		Version: toolVersion, Progress: func(what string, records uint64) {
			p.showLine("%s (%d written)", what, records)
		},
	})
	return []string{into}, err
}
