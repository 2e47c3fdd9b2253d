// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// A picture of bandwidth over size with a line for each curve, as a self-contained SVG.

// Size of the picture and of the plot in it, px.
const (
	pictureWidth = 960
	plotLeft     = 78
	plotRight    = pictureWidth - 24
	plotTop      = 74
	plotBottom   = 460
	legendTop    = 530
	legendLine   = 22
	legendText   = 52 // characters of a legend entry
)

// maxTicks is the number of sizes below the axis.
const maxTicks = 12

// WriteCurves draws curves below a title.
func WriteCurves(out io.Writer, title string, curves []bandwidth.Curve) error {
	w := bufio.NewWriter(out)
	plot := NewPlot(curves, maxTicks)
	height := legendTop + legendLine*((len(plot.Lines)+1)/2) + 16
	if plot.Left > 0 {
		height += legendLine
	}
	fmt.Fprintf(
		w, `<svg class="curves" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Bus bandwidth over size">`+"\n",
		pictureWidth, height, pictureWidth, height)
	writeCurveStyle(w)
	fmt.Fprintf(w, `<rect class="ground" width="%d" height="%d"/>`+"\n", pictureWidth, height)
	svgLabel(w, "title", 24, 32, "start", "Bus bandwidth over size")
	svgLabel(w, "dim", 24, 53, "start", title)
	writeAxes(w, plot)
	for i := range plot.Lines {
		writeCurve(w, &plot.Lines[i])
	}
	for i := range plot.Lines {
		writeCurveName(w, i, &plot.Lines[i])
	}
	if plot.Left > 0 {
		svgLabel(w, "dim", 24, float64(height-14), "start",
			units.Count(plot.Left, "more curve", "more curves")+" of fewer bytes are not drawn")
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

// writeCurveStyle writes style rules that affect only this picture, so that a page can contain it.
func writeCurveStyle(w *bufio.Writer) {
	fmt.Fprintln(w, `<style>`)
	fmt.Fprintln(w, `svg.curves{--ground:#fff;--ink:#1c1c1e;--dim:#5f6368;--grid:#e4e6e9;--axis:#8d9299}`)
	for i, c := range curveColors {
		fmt.Fprintf(w, "svg.curves{--c%d:%s}", i, c[0])
	}
	fmt.Fprint(w, "\n@media screen and "+
		"(prefers-color-scheme:dark){"+
		"svg.curves{--ground:#17191c;--ink:#e8eaed;--dim:#a5abb3;--grid:#2c3036;--axis:#6b7078}")
	for i, c := range curveColors {
		fmt.Fprintf(w, "svg.curves{--c%d:%s}", i, c[1])
	}
	fmt.Fprintln(w, "}\n.curves .ground{fill:var(--ground)}.curves text{font:13px "+
		"system-ui,sans-serif;fill:var(--ink)}.curves .title{font-size:19px;font-weight:600}.curves "+
		".dim{fill:var(--dim)}")
	fmt.Fprintln(w, ".curves .grid{stroke:var(--grid)}.curves .axis{stroke:var(--axis)}.curves "+
		".line{fill:none;stroke-width:2;stroke-linejoin:round}.curves .replayed{stroke-dasharray:7 4}")
	for i := range curveColors {
		fmt.Fprintf(w, ".curves .c%d{fill:var(--c%d)}.curves .line.c%d{fill:none;stroke:var(--c%d)}", i, i, i, i)
	}
	fmt.Fprintln(w, "\n</style>")
}

func svgLabel(w *bufio.Writer, class string, x, y float64, anchor, text string) {
	fmt.Fprintf(w, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", class, px(x), px(y), anchor,
		html.EscapeString(text))
}

// px formats a coordinate, rounded to a tenth of a pixel.
func px(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// plotX and plotY convert positions on the axes, 0 to 1, to pixels.
func plotX(share float64) float64 { return plotLeft + share*(plotRight-plotLeft) }

func plotY(share float64) float64 { return plotBottom - share*(plotBottom-plotTop) }

func writeAxes(w *bufio.Writer, p *Plot) {
	line := func(class string, x1, y1, x2, y2 float64) {
		fmt.Fprintf(w, `<path class="%s" d="M%s %sL%s %s"/>`+"\n", class, px(x1), px(y1), px(x2), px(y2))
	}
	for _, t := range p.Sizes {
		x := plotX(t.At)
		line("grid", x, plotTop, x, plotBottom)
		svgLabel(w, "dim", x, plotBottom+20, "middle", t.Text)
	}
	for _, t := range p.Bandwidths {
		y := plotY(t.At)
		line("grid", plotLeft, y, plotRight, y)
		svgLabel(w, "dim", plotLeft-10, y+4, "end", t.Text)
	}
	line("axis", plotLeft, plotBottom, plotRight, plotBottom)
	line("axis", plotLeft, plotTop, plotLeft, plotBottom)
	svgLabel(w, "", (plotLeft+plotRight)/2, plotBottom+44, "middle", "size")
	fmt.Fprintf(
		w, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">bus bandwidth, GB/s</text>`+"\n",
		(plotTop+plotBottom)/2)
}

// lineClass returns the CSS classes of a curve's line: its color and its dashes.
func lineClass(l *PlotLine) string {
	class := fmt.Sprintf("line c%d", l.color)
	if l.Replayed {
		class += " replayed"
	}
	return class
}

func writeCurve(w *bufio.Writer, l *PlotLine) {
	var path strings.Builder
	for k, p := range l.Points {
		fmt.Fprintf(&path, "%s%s %s", map[bool]string{true: "M", false: "L"}[k == 0], px(plotX(p.X)), px(plotY(p.Y)))
	}
	if len(l.Points) > 1 {
		fmt.Fprintf(w, `<path class="%s" d="%s"/>`+"\n", lineClass(l), path.String())
	}
	for _, p := range l.Points {
		text := fmt.Sprintf("%s: %s, %s GB/s (algorithm bandwidth %s), %s", l.Name, p.Size, p.BusBW, p.AlgBW,
			units.Count(int(p.Operations), "operation", "operations"))
		fmt.Fprintf(w, `<g class="c%d" transform="translate(%s %s)"><title>%s</title><path d="%s"/></g>`+"\n", l.color,
			px(plotX(p.X)), px(plotY(p.Y)), html.EscapeString(text), l.Mark)
	}
}

func writeCurveName(w *bufio.Writer, i int, l *PlotLine) {
	x, y := float64(24+i%2*(pictureWidth-24)/2), float64(legendTop+i/2*legendLine)
	text := l.Name
	if r := []rune(text); len(r) > legendText {
		text = string(r[:legendText-1]) + "…"
	}
	fmt.Fprintf(
		w, `<path class="%s" d="M%s %sh30"/><g class="c%d" transform="translate(%s %s)"><path d="%s"/></g>`+"\n",
		lineClass(l), px(x), px(y-4), l.color, px(x+15), px(y-4), l.Mark)
	svgLabel(w, "", x+40, y, "start", text)
}
