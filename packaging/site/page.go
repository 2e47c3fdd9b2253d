// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// section is what a search finds: a heading with what stands below it.
type section struct {
	Page  string `json:"p"` // file and place, seen from the top of the site
	Title string `json:"t"` // of page and section
	Text  string `json:"x"`
}

// Raw HTML is that of this repository: pictures for dark screens, and comments.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()),
)

var layout = template.Must(template.ParseFS(assets, "page.html"))

// page makes the file of one page, and notes its sections and the files that it needs.
func (s *site) page(name string) error {
	source, err := os.ReadFile(filepath.Join(s.root, name))
	if err != nil {
		return err
	}
	root := markdown.Parser().Parse(text.NewReader(source),
		parser.WithContext(parser.NewContext(parser.WithIDs(anchors{}))))
	if err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Link:
				n.Destination = []byte(s.link(name, string(n.Destination)))
			case *ast.Image:
				n.Destination = []byte(s.link(name, string(n.Destination)))
			}
		}
		return ast.WalkContinue, nil
	}); err != nil {
		return err
	}
	for _, m := range rawFile.FindAllSubmatch(source, -1) {
		s.link(name, string(m[1]))
	}
	title := s.index(name, root, source)
	var body, all bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, root); err != nil {
		return err
	}
	if err := layout.Execute(&all, struct {
		Title, Top string
		Body       template.HTML
	}{title, strings.Repeat("../", strings.Count(name, "/")), template.HTML(body.String())}); err != nil {
		return err
	}
	return s.write(target(name), all.Bytes())
}

// rawFile is a file that raw HTML shows.
var rawFile = regexp.MustCompile(`(?:srcset|src)="([^":]+)"`)

// link is what a destination of a page becomes in its file: pages lead to the files made of them, files that are there
// are copied. A folder leads to its page; one without is not in the site, and leads to nothing but the page itself.
func (s *site) link(page, destination string) string {
	file, place, found := strings.Cut(destination, "#")
	if file == "" || strings.Contains(destination, ":") {
		return destination
	}
	name := path.Join(path.Dir(page), file)
	info, err := os.Stat(filepath.Join(s.root, name))
	switch {
	case s.pages[name]:
		file = strings.TrimSuffix(file, path.Base(name)) + path.Base(target(name))
	case s.pages[path.Join(name, "README.md")]:
		file = strings.TrimSuffix(file, "/") + "/index.html"
	case err == nil && info.Mode().IsRegular():
		s.files = append(s.files, name)
		file = shown(file)
	case err == nil:
		return "#"
	}
	if found {
		return file + "#" + place
	}
	return file
}

// shown is the name under which a file is in the site: pictures as they are, sources as texts, which browsers show and
// which are no Go packages in the folder of a build.
func shown(name string) string {
	if path.Ext(name) == ".png" {
		return name
	}
	return name + ".txt"
}

// index notes a page's sections, and gives its title.
func (s *site) index(name string, root ast.Node, source []byte) (title string) {
	first, at := len(s.sections), -1
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			words := strings.TrimSpace(plain(n, source))
			place := ""
			if title == "" {
				title = words
			} else if id, ok := h.AttributeString("id"); ok {
				place, words = "#"+string(id.([]byte)), title+" › "+words
			}
			s.sections, at = append(s.sections, section{Page: target(name) + place, Title: words}), len(s.sections)
			continue
		}
		if at >= 0 && n.Kind() != ast.KindHTMLBlock {
			s.sections[at].Text += plain(n, source) + " "
		}
	}
	for i := first; i < len(s.sections); i++ {
		s.sections[i].Text = strings.Join(strings.Fields(s.sections[i].Text), " ")
	}
	return title
}

// plain is the text of a node, without marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := 0; entering && i < n.Lines().Len(); i++ {
				line := n.Lines().At(i)
				b.Write(line.Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil // which never fails
	})
	return b.String()
}

// writeIndex writes what the search looks through, as a script: a page that is opened from disk may read no other
// files.
func (s *site) writeIndex() error {
	all, err := json.Marshal(s.sections)
	if err != nil {
		return err
	}
	return s.write("index.js", []byte("const sections = "+string(all)+";\n"))
}

// anchors gives headings the ids that forges give them.
type anchors map[string]int

func (a anchors) Generate(heading []byte, _ ast.NodeKind) []byte {
	words := regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(string(heading), "]")
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(words))
	a[id]++
	if n := a[id]; n > 1 {
		id += "-" + strconv.Itoa(n-1)
	}
	return []byte(id)
}

func (a anchors) Put([]byte) {}
