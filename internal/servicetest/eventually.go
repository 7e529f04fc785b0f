package servicetest

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// pollPause is the least time between two looks of Eventually.
const pollPause = 10 * time.Millisecond

// Eventually waits until so holds, and ends the test if it does not within
// Patience. It asks in the goroutine of the test, so that so may end the test
// itself and nothing asks on after the end. Between two looks it rests as long as
// the last one took, at least 10 ms. saying is a format and its arguments, as for
// t.Logf.
func Eventually(t testing.TB, so func() bool, saying ...any) {
	t.Helper()
	eventually(t, Patience(), so, saying)
}

func eventually(t testing.TB, patience time.Duration, so func() bool, saying []any) {
	t.Helper()
	for begun := time.Now(); ; {
		asked := time.Now()
		if so() {
			return
		}
		if time.Since(begun) > patience {
			t.Fatal(complaint(fmt.Sprintf("not so within %v", patience), saying))
		}
		time.Sleep(max(pollPause, time.Since(asked)))
	}
}

// Late says that err is a deadline which was over, as it may be on a slow machine: what
// is right is to ask again.
func Late(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}

// InTime asks until the answer is another one than that a deadline was over, and ends
// the test if that is an error.
func InTime[T any](t testing.TB, ask func() (T, error)) T {
	t.Helper()
	var answer T
	var err error
	Eventually(t, func() bool { answer, err = ask(); return !Late(err) })
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Receive takes the next value of c, and ends the test if none comes, nor the end
// of c, within Patience. A closed c gives the zero value.
func Receive[T any](t testing.TB, c <-chan T, saying ...any) T {
	t.Helper()
	return receive(t, Patience(), c, saying)
}

func receive[T any](t testing.TB, patience time.Duration, c <-chan T, saying []any) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatal(complaint(fmt.Sprintf("nothing came within %v", patience), saying))
		panic("unreachable")
	}
}

// complaint adds to what went wrong what the test says about it.
func complaint(what string, saying []any) string {
	if len(saying) == 0 {
		return what
	}
	if format, ok := saying[0].(string); ok {
		return what + ": " + fmt.Sprintf(format, saying[1:]...)
	}
	return what + ": " + fmt.Sprint(saying...)
}
