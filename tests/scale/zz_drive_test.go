package scale

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nccl-otf2/nccl-otf2/internal/testkit"
	"github.com/nccl-otf2/nccl-otf2/tests/browser"
)

func TestZZDrive(t *testing.T) {
	b, err := browser.Start(context.Background())
	testkit.Must(t, err)
	defer b.Close()
	w := int64(1440)
	h := int64(900)
	if os.Getenv("NARROW") != "" {
		w, h = 390, 844
	}
	p, err := b.Blank(browser.Options{Width: w, Height: h, Timeout: 9 * time.Minute, Dark: os.Getenv("DARK") != ""})
	testkit.Must(t, err)
	defer p.Close()
	began := time.Now()
	testkit.Must(t, p.Run(chromedp.Navigate(os.Getenv("URL"))))
	testkit.Must(t, p.Eval(`new Promise((done) => {
			const look = () => window.__timeline?.frames.length > 0 || window.__failure ? requestAnimationFrame(() => done(true)) : setTimeout(look, 5);
			look();
		})`, nil))
	t.Logf("first picture %.2f", time.Since(began).Seconds())
	testkit.Must(t, p.Eval(`{ window.__long = []; new PerformanceObserver((l) => { for (const e of l.getEntries()) window.__long.push(e.duration); }).observe({ type: "longtask", buffered: true }); 1 }`, nil))
	text, err := os.ReadFile(os.Getenv("ACTIONS"))
	testkit.Must(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if name, ok := strings.CutPrefix(line, "shot "); ok {
			var png []byte
			testkit.Must(t, p.Run(chromedp.CaptureScreenshot(&png)))
			testkit.Must(t, os.WriteFile(name, png, 0o644))
			continue
		}
		began := time.Now()
		var out any
		err := p.Eval("(async (app) => {"+helpers+"window.__long.length = 0; const r = await (async () => {"+line+"})(); await new Promise((d) => setTimeout(d, 60)); return JSON.stringify([r, Math.round(Math.max(0, ...window.__long))]); })(window.__timeline)", &out)
		t.Logf("%6.2f s  %v  %v  %s", time.Since(began).Seconds(), out, err, line)
	}
	if errs := p.Errors(); len(errs) > 0 {
		t.Errorf("the page complains: %q", errs)
	}
}
