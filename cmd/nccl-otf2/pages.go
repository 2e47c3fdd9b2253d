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

// With the tag "pages" the tool writes its own manual pages and shell completions, which `make build` puts into
// build/share. The tool that people get does without: what writes them needs a Markdown reader.
func init() {
	extraCommands = append(extraCommands, &cobra.Command{
		Use:    "pages DIR",
		Hidden: true,
		Args:   exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := manual(root, filepath.Join(args[0], "man", "man1")); err != nil {
				return err
			}
			return completions(root, args[0])
		},
	})
}

// manual writes a page for each command that is shown.
func manual(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	never := time.Unix(0, 0).UTC() // no date: the same sources give the same pages
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "nccl-otf2 " + toolVersion, Manual: "nccl-otf2",
		Date: &never}, dir)
}

// completions writes what shells load by themselves, at the places where they look for it in a prefix's share.
func completions(root *cobra.Command, share string) error {
	for path, write := range map[string]func(string) error{
		"bash-completion/completions/nccl-otf2": func(
			p string) error {
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
