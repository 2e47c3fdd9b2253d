// SPDX-License-Identifier: Apache-2.0

//go:build pages

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// With the build tag "pages", the tool writes its own manual pages and shell completions, which `make build` puts into
// build/share. The released tool lacks this command, because it needs a Markdown parser.
func init() {
	extraCommands = append(extraCommands, &cobra.Command{
		Use:    "pages DIR",
		Hidden: true,
		Args:   exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := writeManual(root, filepath.Join(args[0], "man", "man1")); err != nil {
				return err
			}
			return writeCompletions(root, args[0])
		},
	})
}

// writeManual writes a page for each visible command.
func writeManual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	never := time.Unix(0, 0).UTC() // no date, so that pages are reproducible
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "nccl-otf2 " + toolVersion, Manual: "nccl-otf2",
		Date: &never}, dir)
}

// writeCompletions writes the completions to the folders from which shells load them.
func writeCompletions(root *cobra.Command, share string) error {
	for path, write := range map[string]func(string) error{
		"bash-completion/completions/nccl-otf2": func(p string) error {
			return root.GenBashCompletionFileV2(p, true)
		},
		"zsh/site-functions/_nccl-otf2":            root.GenZshCompletionFile,
		"fish/vendor_completions.d/nccl-otf2.fish": func(p string) error { return root.GenFishCompletionFile(p, true) },
	} {
		path = filepath.Join(share, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path); err != nil {
			return fmt.Errorf("completion: %w", err)
		}
	}
	return nil
}
