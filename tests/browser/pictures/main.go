// SPDX-License-Identifier: Apache-2.0

// Command pictures takes the pictures of a timeline page that the documentation shows.
//
//	go run ./tests/browser/pictures build/demo/timeline.html docs
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

// picture is one of them: how wide, in which colors, and what is done first.
type picture struct {
	name          string
	width, height int64
	dark          bool
	scale         float64
	prepare       string // expression with functions of pictures.js; a promise is waited for
	of            string // selector of the element that is taken; "": all of the page
}

//go:embed pictures.js
var script string

var pictures = []picture{
	{"timeline-light.png", 1280, 800, false, 1, "late()", ""},
	{"timeline-dark.png", 1280, 800, true, 1, "late()", ""},
	{"timeline-path.png", 1280, 720, false, 1, "path()", ""},
	{"timeline-narrow.png", 390, 780, false, 1.5, "late()", ""},
	{"timeline-ranks.png", 1280, 480, false, 1, "ranks()", ""},
	{"timeline-waits.png", 1280, 900, false, 1, `chart("waits")`, "#panel"},
	{"timeline-operations.png", 1280, 900, false, 1, `chart("operations")`, "#panel"},
	{"timeline-matrix.png", 1280, 900, false, 1, `chart("matrix", () => app.panel.matrix.show("waiting"))`, "#panel"},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures PAGE FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(page, folder string) error {
	abs, err := filepath.Abs(page)
	if err != nil {
		return err
	}
	b, err := browser.Start(context.Background())
	if err != nil {
		return err
	}
	defer b.Close()
	for _, pic := range pictures {
		if err := take(b, "file://"+abs, folder, &pic); err != nil {
			return fmt.Errorf("%s: %w", pic.name, err)
		}
	}
	return nil
}

func take(b *browser.Browser, url, folder string, pic *picture) error {
	p, err := b.Open(url, browser.Options{Width: pic.width, Height: pic.height, Dark: pic.dark, Scale: pic.scale})
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Eval("(async () => {"+script+"\nawait "+pic.prepare+"; })()", nil); err != nil {
		return err
	}
	if err := p.Settle(); err != nil {
		return err
	}
	png, err := p.Picture(pic.of)
	if err != nil {
		return err
	}
	if errs := p.Errors(); len(errs) > 0 {
		return fmt.Errorf("the page complains: %q", errs)
	}
	path := filepath.Join(folder, pic.name)
	fmt.Printf("%s: %d KiB\n", path, len(png)>>10)
	return os.WriteFile(path, png, 0o644)
}
