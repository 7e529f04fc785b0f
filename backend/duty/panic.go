package duty

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic that became an error: a mistake of this program.
type PanicError struct {
	Value any
	// Stack is the goroutine's, as the runtime prints it.
	Stack string
}

func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Safely runs do; a panic in it is returned as *PanicError. It reaches no goroutine that
// do starts: each of those needs one of its own.
func Safely(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: string(debug.Stack())}
		}
	}()
	return do()
}
