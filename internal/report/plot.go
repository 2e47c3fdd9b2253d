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

// Plot is bandwidth over size as it is drawn, whatever the size of the picture: both axes logarithmic, places as shares
// of the axes (0: left, below). The picture of WriteCurves and the timeline's page are made of it.
type Plot struct {
	Sizes      []Tick     `json:"sizes"`
	Bandwidths []Tick     `json:"bandwidths"` // GB/s
	Lines      []PlotLine `json:"lines"`
	Left       int        `json:"left"` // curves of fewer bytes, which are not drawn
}

// Tick is a place on an axis, and what stands there.
type Tick struct {
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// PlotLine is a curve.
type PlotLine struct {
	Name     string      `json:"name"`
	Colors   [2]string   `json:"colors"`   // on light ground, on dark ground
	Mark     string      `json:"mark"`     // the points' shape around 0,0: a path of SVG, px
	Replayed bool        `json:"replayed"` // drawn with dashes
	Points   []PlotPoint `json:"points"`   // by size
	color    int         // index into curveColors
}

// PlotPoint is a point of a curve with its figures as texts.
type PlotPoint struct {
	X          float64 `json:"x"`
	Y          float64 `json:"y"`
	Size       string  `json:"size"`
	BusBW      string  `json:"busbw"` // GB/s
	AlgBW      string  `json:"algbw"` // GB/s
	Operations uint64  `json:"operations"`
}

// maxCurves is how many curves a picture has: those of the most bytes.
const maxCurves = 12

// curveColors are pairs: on light ground, on dark ground. People with color vision deficiencies tell them apart (Okabe
// and Ito's), a little darker on light ground and lighter on dark ground; the shape of the points tells curves apart,
// too.
var curveColors = [][2]string{
	{"#0072b2", "#56b4e9"}, {"#c65300", "#ff9a57"}, {"#00795a", "#2fd6a8"}, {"#a8437f", "#f09ac8"},
	{"#8a6d00", "#f0e442"}, {"#4b4b4b", "#c8c8c8"}, {"#6a4fc1", "#b3a1ff"}, {"#b3261e", "#ff8a80"},
}

// curveMarks are the points' shapes around 0,0: circle, square, triangle, diamond.
var curveMarks = []string{"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z", "M-3.6-3.6h7.2v7.2h-7.2Z", "M0-5 4.6 3.4-4.6 3.4Z",
	"M0-5.2 5.2 0 0 5.2-5.2 0Z"}

// NewPlot places curves; ticks is how many sizes at most stand below the axis.
func NewPlot(curves []bandwidth.Curve, ticks int) *Plot {
	shown, left := heaviest(curves)
	f := frameOf(shown)
	p := &Plot{Sizes: f.sizes(ticks), Bandwidths: f.bandwidths(), Lines: []PlotLine{}, Left: left}
	for i := range shown {
		c := &shown[i]
		line := PlotLine{Name: curveName(c), Replayed: c.Replayed, Points: []PlotPoint{}, color: i % len(curveColors),
			Mark: curveMarks[(i/len(curveColors)+i)%len(curveMarks)]}
		line.Colors = curveColors[line.color]
		for _, at := range c.Points {
			if drawable(&at) {
				line.Points = append(line.Points, PlotPoint{f.x(at.Size), f.y(at.BusBW), units.Bytes(at.Size),
					bandwidthText(at.BusBW), bandwidthText(at.AlgBW), at.Operations})
			}
		}
		p.Lines = append(p.Lines, line)
	}
	return p
}

// HasLine reports whether some curve has two sizes. Without one there is no bandwidth over size.
func (p *Plot) HasLine() bool {
	return slices.ContainsFunc(p.Lines, func(l PlotLine) bool { return len(l.Points) > 1 })
}

// drawable reports whether a point has a place on logarithmic axes.
func drawable(p *bandwidth.Point) bool { return p.BusBW > 0 && !math.IsInf(p.BusBW, 1) }

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

// frame is the axes: the logarithms at their ends, of sizes to the base of two, of bandwidths to the base of ten.
type frame struct{ left, right, bottom, top float64 }

func frameOf(curves []bandwidth.Curve) frame {
	f := frame{math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)}
	for i := range curves {
		for _, p := range curves[i].Points {
			if !drawable(&p) {
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
	return (math.Log2(float64(max(size, 1))) - f.left) / (f.right - f.left)
}

func (f frame) y(speed float64) float64 {
	return (math.Log10(speed) - f.bottom) / (f.top - f.bottom)
}

// sizes are the ticks below the plot: powers of two.
func (f frame) sizes(most int) (all []Tick) {
	every := math.Ceil((f.right - f.left) / float64(most))
	for e := math.Ceil(f.left/every) * every; e <= f.right; e += every {
		if e >= 0 && e < 64 {
			all = append(all, Tick{f.x(1 << uint(e)), units.Bytes(1 << uint(e))})
		}
	}
	return all
}

// bandwidths are the ticks beside the plot: powers of ten, and 2 and 5 times these where there are few.
func (f frame) bandwidths() (all []Tick) {
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
