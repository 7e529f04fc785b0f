package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows how far the crowd is: a bar on a terminal, else a line every
// few seconds.
type progress struct {
	out         io.Writer
	bar         *progressbar.ProgressBar // nil without a terminal
	done, total int
	next        time.Time // of the next line
}

// lineEvery is the time between two lines where there is no terminal.
const lineEvery = 5 * time.Second

func newProgress(out io.Writer, total int) *progress {
	p := &progress{out: out, total: total, next: time.Now().Add(lineEvery)}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription("clicks"),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetItsString("clicks"),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// step counts one click.
func (p *progress) step() {
	p.done++
	if p.bar != nil {
		_ = p.bar.Add(1) // a bar that cannot be drawn harms nobody
		return
	}
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(lineEvery)
		fmt.Fprintf(p.out, "%d of %d clicks\n", p.done, p.total)
	}
}

// end removes the bar, also when not everything was done.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
