// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nccl-otf2/nccl-otf2/internal/analysis/bandwidth"
	"github.com/nccl-otf2/nccl-otf2/internal/units"
)

// Plot is a plot of bandwidth over size, independent of the size of the picture: both axes are logarithmic, and
// coordinates are shares of the axes (0: left, bottom). WriteCurves and the timeline's page draw it.
type Plot struct {
	Sizes      []Tick     `json:"sizes"`
	Bandwidths []Tick     `json:"bandwidths"` // GB/s
	Lines      []PlotLine `json:"lines"`
	Left       int        `json:"left"` // number of curves with fewer bytes, which are not drawn
}

// Tick is a position on an axis, and its label.
type Tick struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// PlotLine is a curve.
type PlotLine struct {
	Name     string      `json:"name"`
	Colors   [2]string   `json:"colors"`   // on a light and on a dark background
	Mark     string      `json:"mark"`     // the shape of the points around 0,0: an SVG path, px
	Replayed bool        `json:"replayed"` // drawn with dashes
	Points   []PlotPoint `json:"points"`   // by size
	color    int         // index into curveColors
}

// PlotPoint is a point of a curve with its formatted figures.
type PlotPoint struct {
	X          float64 `json:"x"`
	Y          float64 `json:"y"`
	Size       string  `json:"size"`
	BusBW      string  `json:"busbw"` // GB/s
	AlgBW      string  `json:"algbw"` // GB/s
	Operations uint64  `json:"operations"`
}

// maxCurves is the number of curves in a picture: those with the most bytes.
const maxCurves = 12

// curveColors are pairs of colors for light and dark backgrounds. People with color vision deficiencies can distinguish
// them (Okabe and Ito's palette, slightly darker and lighter); the curves also differ in the shape of their points.
var curveColors = [][2]string{
	{"#0072b2", "#56b4e9"}, {"#c65300", "#ff9a57"}, {"#00795a", "#2fd6a8"}, {"#a8437f", "#f09ac8"},
	{"#8a6d00", "#f0e442"}, {"#4b4b4b", "#c8c8c8"}, {"#6a4fc1", "#b3a1ff"}, {"#b3261e", "#ff8a80"},
}

// curveMarks are the shapes of points around 0,0: circle, square, triangle, diamond.
var curveMarks = []string{"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-3.6-3.6h7.2v7.2h-7.2Z", "M0-5 4.6 3.4-4.6 3.4Z",
	"M0-5.2 5.2 0 0 5.2-5.2 0Z"}

// NewPlot computes the plot of curves; ticks is the maximum number of sizes below the axis.
func NewPlot(curves []bandwidth.Curve, ticks int) *Plot {
	shown, left := largestCurves(curves)
	f := newFrame(shown)
	p := &Plot{Sizes: f.sizeTicks(ticks), Bandwidths: f.bandwidthTicks(), Lines: []PlotLine{}, Left: left}
	for i := range shown {
		c := &shown[i]
		line := PlotLine{Name: curveName(c), Replayed: c.Replayed, Points: []PlotPoint{}, color: i % len(curveColors),
			Mark: curveMarks[(i/len(curveColors)+i)%len(curveMarks)]}
		line.Colors = curveColors[line.color]
		for _, at := range c.Points {
			if isDrawable(&at) {
				line.Points = append(line.Points, PlotPoint{f.x(at.Size), f.y(at.BusBW), units.Bytes(at.Size),
					bandwidthText(at.BusBW), bandwidthText(at.AlgBW), at.Operations})
			}
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}

// HasLine reports whether any curve has at least two sizes, so that there is a line to draw.
func (p *Plot) HasLine() bool {
	return slices.ContainsFunc(p.Lines, func(l PlotLine) bool { return len(l.Points) > 1 })
}

// isDrawable reports whether a point has a position on logarithmic axes.
func isDrawable(p *bandwidth.Point) bool { return p.BusBW > 0 && !math.IsInf(p.BusBW, 1) }

// largestCurves returns the curves to draw, in their order, and the number of the others.
func largestCurves(curves []bandwidth.Curve) (shown []bandwidth.Curve, left int) {
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

// frame holds the ends of the axes: binary logarithms of sizes, and decimal logarithms of bandwidths.
type frame struct{ left, right, bottom, top float64 }

func newFrame(curves []bandwidth.Curve) frame {
	f := frame{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for i := range curves {
		for _, p := range curves[i].Points {
			if !isDrawable(&p) {
				continue
			}
			size, speed := math.Log2(float64(max(p.Size, 1))), math.Log10(p.BusBW)
			f.left, f.right = min(f.left, size), max(f.right, size)
			f.bottom, f.top = min(f.bottom, speed), max(f.top, speed)
		}
	}
	if f.left > f.right { // nothing to draw
		f = frame{10, 30, 0, 1}
	}
	f.left, f.right = math.Floor(f.left-0.25), math.Ceil(f.right+0.25)
	f.bottom, f.top = step125(f.bottom-0.03, false), step125(f.top+0.03, true)
	return f
}

// decimal holds the steps of an axis within a power of ten.
var decimal = []float64{1, 2, 5, 10}

// step125 returns the logarithm of the next higher or lower number that is 1, 2 or 5 times a power of ten.
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
	return (math.Log2(float64(max(size, 1))) - f.left) / (f.right - f.left)
}

func (f frame) y(speed float64) float64 {
	return (math.Log10(speed) - f.bottom) / (f.top - f.bottom)
}

// sizeTicks returns the ticks of the horizontal axis: powers of two.
func (f frame) sizeTicks(most int) (all []Tick) {
	every := math.Ceil((f.right - f.left) / float64(most))
	for e := math.Ceil(f.left/every) * every; e <= f.right; e += every {
		if e >= 0 && e < 64 {
			all = append(all, Tick{f.x(1 << uint(e)), units.Bytes(1 << uint(e))})
		}
	}
	return all
}

// bandwidthTicks returns the ticks of the vertical axis: powers of ten, and on short axes also 2 and 5 times these.
func (f frame) bandwidthTicks() (all []Tick) {
	wide := f.top-f.bottom > 3 // decades
	for power := math.Floor(f.bottom); power <= f.top; power++ {
		for _, s := range decimal[:3] {
			at := power + math.Log10(s)
			if at < f.bottom-1e-9 || at > f.top+1e-9 || wide && s > 1 {
				continue
			}
			v := math.Pow(10, at)
			all = append(all, Tick{f.y(v), bandwidthText(v)})
		}
	}
	return all
}

// curveName returns the name of a curve.
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
