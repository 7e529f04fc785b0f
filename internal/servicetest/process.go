package servicetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// stopWithin is how long Stop waits for a graceful end before it kills.
func stopWithin() time.Duration { return Scaled(30 * time.Second) }

// logTail is how many bytes of a server's log an error repeats.
const logTail = 2048

// Process is a server that this process started and owns. It is the leader of a
// process group of its own, and signals go to the whole group. Its methods are
// safe for concurrent use.
type Process struct {
	name    string
	logPath string
	pid     int
	done    chan struct{}
	err     error // why it ended; read only after done is closed
}

// startProcess starts cmd with its output appended to the file logPath. The
// process is killed by the kernel if this one dies, however it dies; processes
// it forks are not, unless they end with it.
func startProcess(name string, cmd *exec.Cmd, logPath string) (*Process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL

	p := &Process{name: name, logPath: logPath, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(cmd, log, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s (%s): %w", name, cmd.Path, err)
	}
	return p, nil
}

// run starts the process and waits for its end on one operating system thread:
// Linux sends the parent death signal when the thread that forked ends, and Go
// ends idle threads as it likes.
func (p *Process) run(cmd *exec.Cmd, log *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer log.Close()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	started <- nil
	p.err = cmd.Wait()
	close(p.done)
}

// PID is the process id, which stays the same after the end.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end. The error is nil for exit code 0; else it repeats the
// end of the log.
func (p *Process) Wait() error {
	<-p.done
	if p.err == nil {
		return nil
	}
	return p.withLog(fmt.Errorf("%s (pid %d) ended: %w", p.name, p.pid, p.err))
}

// Kill ends the process at once, as a power cut would, and waits until it is
// gone. Killing a dead process is no error.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop asks the process to end (SIGTERM) and waits. After 30 s,
// Scaled, it kills it and returns an error. Stopping a dead process is no error.
func (p *Process) Stop() error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	// A paused process hears the signal only when it goes on.
	if err := p.signal(syscall.SIGCONT); err != nil {
		return err
	}
	within := stopWithin()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.Join(p.withLog(fmt.Errorf("%s (pid %d) did not end within %v of SIGTERM; killed it", p.name, p.pid, within)), p.Kill())
	}
}

// Pause freezes the process (SIGSTOP): its connections stay open and nothing
// answers.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) signal(s syscall.Signal) error {
	select {
	case <-p.done: // its pid may be somebody else's by now
		return nil
	default:
	}
	if err := syscall.Kill(-p.pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to %s (pid %d): %w", s, p.name, p.pid, err)
	}
	return nil
}

// withLog adds the end of the log to err.
func (p *Process) withLog(err error) error {
	tail, readErr := readTail(p.logPath)
	if readErr != nil {
		return fmt.Errorf("%w; its log cannot be read: %w", err, readErr)
	}
	return fmt.Errorf("%w; end of its log:\n%s", err, tail)
}

func readTail(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-logTail), logTail))
	return bytes.TrimSpace(tail), err
}
