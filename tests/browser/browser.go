// SPDX-License-Identifier: Apache-2.0

// Package browser drives a headless Chromium, for tests and measurements of the timeline's page.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// names are what Chromium is called, in the order in which they are looked for.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// errMissing says that there is no browser, and what to do.
var errMissing = errors.New("there is no chromium: scripts/setup.sh installs it (Debian: apt-get install chromium)")

// Find gives the path of the browser.
func Find() (string, error) {
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path, nil
		}
	}
	return "", errMissing
}

// Browser is one that runs.
type Browser struct {
	ctx    context.Context
	cancel context.CancelFunc
}

// Start starts a browser without a window. It draws with the processor, as on machines without a GPU.
func Start(parent context.Context) (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("enable-automation", false), chromedp.WSURLReadTimeout(5*time.Minute))
	alloc, endAlloc := chromedp.NewExecAllocator(parent, opts...)
	quiet := func(string, ...any) {} // chromedp tells of news of the browser that it does not know
	ctx, end := chromedp.NewContext(alloc, chromedp.WithErrorf(quiet))
	b := &Browser{ctx: ctx, cancel: func() { end(); endAlloc() }}
	if err := chromedp.Run(ctx); err != nil {
		b.cancel()
		return nil, err
	}
	return b, nil
}

// Close ends the browser.
func (b *Browser) Close() { b.cancel() }

// Page is a tab.
type Page struct {
	context.Context
	close func()

	mu     sync.Mutex
	errors []string
}

// Options are of a tab.
type Options struct {
	Width, Height int64
	Dark, Touch   bool
	Scale         float64       // of the screen; 0: 1
	Timeout       time.Duration // of all that is done in it; 0: ten minutes
}

// Open opens an address and waits until the timeline in it is there or has failed.
func (b *Browser) Open(url string, o Options) (*Page, error) {
	p, err := b.Blank(o)
	if err != nil {
		return nil, err
	}
	// chromedp's own way of polling needs eval, which the page's policy forbids.
	if err = p.Run(chromedp.Navigate(url)); err == nil {
		err = p.Eval(`new Promise((done) => {
			const look = () => window.__timeline || window.__failure ? done(true) : setTimeout(look, 20);
			look();
		})`, nil)
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return p, nil
}

// Blank gives an empty tab.
func (b *Browser) Blank(o Options) (*Page, error) {
	ctx, end := chromedp.NewContext(b.ctx)
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	ctx, endTime := context.WithTimeout(ctx, o.Timeout)
	p := &Page{Context: ctx, close: func() { endTime(); end() }}
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			p.note("exception: " + ev.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.APITypeError || ev.Type == runtime.APITypeWarning {
				var text []string
				for _, a := range ev.Args {
					text = append(text, string(a.Value)+a.Description)
				}
				p.note("console: " + strings.Join(text, " "))
			}
		case *log.EventEntryAdded:
			if ev.Entry.Level == log.LevelError {
				p.note("log: " + ev.Entry.Text + " " + ev.Entry.URL)
			}
		}
	})
	scheme := "light"
	if o.Dark {
		scheme = "dark"
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	err := p.Run(
		log.Enable(),
		page.BringToFront(), // tabs in the background are not drawn
		emulation.SetFocusEmulationEnabled(true),
		emulation.SetDeviceMetricsOverride(o.Width, o.Height, o.Scale, false),
		emulation.SetTouchEmulationEnabled(o.Touch),
		emulation.SetEmulatedMedia().WithFeatures(
			[]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
	)
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Page) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, text)
}

// Errors are what the browser and the page complained about.
func (p *Page) Errors() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.errors...)
}

// Run does something in the tab.
func (p *Page) Run(actions ...chromedp.Action) error { return chromedp.Run(p, actions...) }

// Eval evaluates an expression, waits for it if it is a promise, and decodes its value.
func (p *Page) Eval(expression string, to any) error {
	return p.Run(chromedp.Evaluate(expression, to,
		func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
}

// Processor is how much processor time the tab's main thread has used, in seconds. The first call begins to count.
func (p *Page) Processor() (seconds float64, err error) {
	err = p.Run(
		performance.Enable().WithTimeDomain(performance.EnableTimeDomainThreadTicks),
		chromedp.ActionFunc(func(ctx context.Context) error {
			metrics, err := performance.GetMetrics().Do(ctx)
			for _, m := range metrics {
				if m.Name == "TaskDuration" {
					seconds = m.Value
				}
			}
			return err
		}),
	)
	return seconds, err
}

// Settle waits until everything that is shown has been unpacked and drawn.
func (p *Page) Settle() error {
	return p.Eval(`new Promise((done) => {
		const app = window.__timeline;
		let calm = 0;
		const still = () => app.store.loading === 0 && app.stage.painted.coarse === 0;
		const look = () => {
			calm = still() ? calm + 1 : 0;
			if (calm > 2) app.stage.draw(); // on a busy machine the browser may not have asked for a picture yet
			if (calm > 2 && still()) return done(true);
			app.stage.invalidate();
			setTimeout(look, 30);
		};
		look();
	})`, nil)
}

// Picture is what the tab shows, as PNG: all of it, or the element of a selector.
func (p *Page) Picture(of string) ([]byte, error) {
	var b []byte
	if of == "" {
		err := p.Run(chromedp.CaptureScreenshot(&b))
		return b, err
	}
	err := p.Run(chromedp.Screenshot(of, &b, chromedp.ByQuery))
	return b, err
}

// Close closes the tab.
func (p *Page) Close() { p.close() }
