// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/nccl-otf2/nccl-otf2/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// A picture of bandwidth over size: both axes logarithmic, a line for each curve, as SVG that needs nothing beside itself. Its colors are such
// that people with color vision deficiencies tell them apart (Okabe and Ito's), a little darker on light ground and lighter on dark
// ground; the shape of the points tells curves apart, too.

// Size of the picture and of the plot in it, px.
const (
	pictureWidth = 960
	plotLeft     = 78
	plotRight    = pictureWidth - 24
	plotTop      = 74
	plotBottom   = 460
	legendTop    = 530
	legendLine   = 22
	legendText   = 52 // characters of an entry
)

// maxCurves is how many curves a picture has: those of the most bytes.
const maxCurves = 12

// curveColors are pairs: on light ground, on dark ground.
var curveColors = [][2]string{
	{"#0072b2", "#56b4e9"}, {"#c65300", "#ff9a57"}, {"#00795a", "#2fd6a8"}, {"#a8437f", "#f09ac8"}, {"#8a6d00", "#f0e442"}, {"#4b4b4b", "#c8c8c8"}, {"#6a4fc1", "#b3a1ff"}, {"#b3261e", "#ff8a80"},
}

// curveMarks are the points' shapes around 0,0.
var curveMarks = []string{
	`<circle r="4"/>`, `<rect x="-3.6" y="-3.6" width="7.2" height="7.2"/>`, `<path d="M0-5 4.6 3.4-4.6 3.4Z"/>`, `<path d="M0-5.2 5.2 0 0 5.2-5.2 0Z"/>`,
}

// WriteCurves draws curves. title says what they are of.
func WriteCurves(out io.Writer, title string, curves []bandwidth.Curve) error {
	w := bufio.NewWriter(out)
	shown, left := heaviest(curves)
	frame := frameOf(shown)
	height := legendTop + legendLine*((len(shown)+1)/2) + 16
	if left > 0 {
		height += legendLine
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Bus bandwidth over size">`+"\n",
		pictureWidth, height, pictureWidth, height)
	writeCurveStyle(w)
	fmt.Fprintf(w, `<rect class="ground" width="%d" height="%d"/>`+"\n", pictureWidth, height)
	svgLabel(w, "title", 24, 32, "start", "Bus bandwidth over size")
	svgLabel(w, "dim", 24, 53, "start", title)
	frame.write(w)
	for i := range shown {
		writeCurve(w, frame, i, &shown[i])
	}
	for i := range shown {
		writeCurveName(w, i, &shown[i])
	}
	if left > 0 {
		svgLabel(w, "dim", 24, float64(height-14), "start", units.Count(left, "more curve", "more curves")+" of fewer bytes are not drawn")
	}
	fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

// heaviest are the curves to draw, in their order, and how many there are beside them.
func heaviest(curves []bandwidth.Curve) (shown []bandwidth.Curve, left int) {
	bytes := func(c *bandwidth.Curve) (sum float64) {
		for _, p := range c.Points {
			sum += float64(p.Size) * float64(p.Operations)
		}
		return sum
	}
	order := make([]int, len(curves))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(bytes(&curves[b]), bytes(&curves[a])) })
	order = order[:min(len(order), maxCurves)]
	slices.Sort(order)
	for _, i := range order {
		shown = append(shown, curves[i])
	}
	return shown, len(curves) - len(shown)
}

func writeCurveStyle(w *bufio.Writer) {
	fmt.Fprintln(w, `<style>`)
	fmt.Fprintln(w, `svg{--ground:#fff;--ink:#1c1c1e;--dim:#5f6368;--grid:#e4e6e9;--axis:#8d9299}`)
	for i, c := range curveColors {
		fmt.Fprintf(w, "svg{--c%d:%s}", i, c[0])
	}
	fmt.Fprint(w, "\n@media(prefers-color-scheme:dark){svg{--ground:#17191c;--ink:#e8eaed;--dim:#a5abb3;--grid:#2c3036;--axis:#6b7078}")
	for i, c := range curveColors {
		fmt.Fprintf(w, "svg{--c%d:%s}", i, c[1])
	}
	fmt.Fprintln(w, "}\n.ground{fill:var(--ground)}text{font:13px system-ui,sans-serif;fill:var(--ink)}.title{font-size:19px;font-weight:600}.dim{fill:var(--dim)}")
	fmt.Fprintln(w, ".grid{stroke:var(--grid)}.axis{stroke:var(--axis)}.line{fill:none;stroke-width:2;stroke-linejoin:round}.replayed{stroke-dasharray:7 4}")
	for i := range curveColors {
		fmt.Fprintf(w, ".c%d{fill:var(--c%d)}.line.c%d{fill:none;stroke:var(--c%d)}", i, i, i, i)
	}
	fmt.Fprintln(w, "\n</style>")
}

func svgLabel(w *bufio.Writer, class string, x, y float64, anchor, text string) {
	fmt.Fprintf(w, `<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", class, place(x), place(y), anchor, html.EscapeString(text))
}

// place is a coordinate, to a tenth of a pixel.
func place(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// frame is the axes: sizes by powers of two, bandwidths by powers of ten.
type frame struct{ left, right, bottom, top float64 }

func frameOf(curves []bandwidth.Curve) frame {
	f := frame{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for i := range curves {
		for _, p := range curves[i].Points {
			size, speed := math.Log2(float64(max(p.Size, 1))), math.Log10(p.BusBW)
			f.left, f.right = min(f.left, size), max(f.right, size)
			if p.BusBW > 0 {
				f.bottom, f.top = min(f.bottom, speed), max(f.top, speed)
			}
		}
	}
	if f.left > f.right {
		f.left, f.right = 10, 30
	}
	if f.bottom > f.top {
		f.bottom, f.top = 0, 1
	}
	f.left, f.right = math.Floor(f.left-0.25), math.Ceil(f.right+0.25)
	f.bottom, f.top = step125(f.bottom-0.03, false), step125(f.top+0.03, true)
	return f
}

// decimal are the steps of an axis within a power of ten.
var decimal = []float64{1, 2, 5, 10}

// step125 is the logarithm of the next 1, 2 or 5 times a power of ten, above or below.
func step125(v float64, up bool) float64 {
	base, best := math.Floor(v), math.Floor(v)
	for _, s := range decimal {
		at := base + math.Log10(s)
		if up && at >= v {
			return at
		}
		if at <= v {
			best = at
		}
	}
	return best
}

func (f frame) x(size uint64) float64 {
	return plotLeft + (math.Log2(float64(max(size, 1)))-f.left)/(f.right-f.left)*(plotRight-plotLeft)
}

func (f frame) y(speed float64) float64 {
	return plotBottom - (math.Log10(speed)-f.bottom)/(f.top-f.bottom)*(plotBottom-plotTop)
}

// maxTicks is how many sizes stand below the axis.
const maxTicks = 12

func (f frame) write(w *bufio.Writer) {
	line := func(class string, x1, y1, x2, y2 float64) {
		fmt.Fprintf(w, `<path class="%s" d="M%s %sL%s %s"/>`+"\n", class, place(x1), place(y1), place(x2), place(y2))
	}
	every := math.Ceil((f.right - f.left) / maxTicks)
	for e := math.Ceil(f.left/every) * every; e <= f.right; e += every {
		x := f.x(1 << uint(max(e, 0)))
		if e < 0 {
			continue
		}
		line("grid", x, plotTop, x, plotBottom)
		svgLabel(w, "dim", x, plotBottom+20, "middle", units.Bytes(1<<uint(e)))
	}
	wide := f.top-f.bottom > 3 // decades
	for power := math.Floor(f.bottom); power <= f.top; power++ {
		for _, s := range decimal[:3] {
			at := power + math.Log10(s)
			if at < f.bottom-1e-9 || at > f.top+1e-9 || wide && s > 1 {
				continue
			}
			v := math.Pow(10, at)
			line("grid", plotLeft, f.y(v), plotRight, f.y(v))
			svgLabel(w, "dim", plotLeft-10, f.y(v)+4, "end", fmt.Sprintf("%.3g", v))
		}
	}
	line("axis", plotLeft, plotBottom, plotRight, plotBottom)
	line("axis", plotLeft, plotTop, plotLeft, plotBottom)
	svgLabel(w, "", (plotLeft+plotRight)/2, plotBottom+44, "middle", "size")
	fmt.Fprintf(w, `<text transform="translate(22 %d) rotate(-90)" text-anchor="middle">bus bandwidth, GB/s</text>`+"\n", (plotTop+plotBottom)/2)
}

// curveClass is what colors a curve.
func curveClass(i int) string { return fmt.Sprintf("c%d", i%len(curveColors)) }

func curveMark(i int) string {
	return curveMarks[(i/len(curveColors)+i)%len(curveMarks)]
}

func curveLine(i int, c *bandwidth.Curve) string {
	class := "line " + curveClass(i)
	if c.Replayed {
		class += " replayed"
	}
	return class
}

func writeCurve(w *bufio.Writer, f frame, i int, c *bandwidth.Curve) {
	points := slices.DeleteFunc(slices.Clone(c.Points), func(p bandwidth.Point) bool { return p.BusBW <= 0 })
	var path strings.Builder
	for k, p := range points {
		fmt.Fprintf(&path, "%s%s %s", map[bool]string{true: "M", false: "L"}[k == 0], place(f.x(p.Size)), place(f.y(p.BusBW)))
	}
	if len(points) > 1 {
		fmt.Fprintf(w, `<path class="%s" d="%s"/>`+"\n", curveLine(i, c), path.String())
	}
	for _, p := range points {
		text := fmt.Sprintf("%s: %s, %s GB/s (algorithm bandwidth %s), %s", curveName(c), units.Bytes(p.Size), bandwidthText(p.BusBW), bandwidthText(p.AlgBW),
			units.Count(int(p.Operations), "operation", "operations"))
		fmt.Fprintf(w, `<g class="%s" transform="translate(%s %s)"><title>%s</title>%s</g>`+"\n", curveClass(i), place(f.x(p.Size)), place(f.y(p.BusBW)), html.EscapeString(text), curveMark(i))
	}
}

// curveName says what a curve is of.
func curveName(c *bandwidth.Curve) string {
	text := c.Operation
	if c.Equal > 0 {
		text += fmt.Sprintf("/%d", c.Equal)
	}
	if c.Algorithm != "" {
		text += " " + c.Algorithm
	}
	if c.Replayed {
		text += " (graph)"
	}
	if c.TimingSource == "network" {
		text += " (network times)"
	}
	return fmt.Sprintf("%s on %s, %s", text, units.OrDash(c.Communicator), units.Count(c.Ranks, "rank", "ranks"))
}

func writeCurveName(w *bufio.Writer, i int, c *bandwidth.Curve) {
	x, y := float64(24+i%2*(pictureWidth-24)/2), float64(legendTop+i/2*legendLine)
	text := curveName(c)
	if r := []rune(text); len(r) > legendText {
		text = string(r[:legendText-1]) + "…"
	}
	fmt.Fprintf(w, `<path class="%s" d="M%s %sh30"/><g class="%s" transform="translate(%s %s)">%s</g>`+"\n", curveLine(i, c), place(x), place(y-4), curveClass(i), place(x+15), place(y-4), curveMark(i))
	svgLabel(w, "", x+40, y, "start", text)
}
