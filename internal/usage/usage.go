// Package usage words the errors of a command line for the one who typed it.
package usage

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// kinds are the values that flags take, by pflag's name of their type.
var kinds = map[string]string{
	"int":      "a whole number",
	"int64":    "a whole number",
	"uint64":   "a whole number, 0 or more",
	"duration": "a duration with its unit, such as 250ms, 5s or 1h30m",
	"bool":     "true or false",
}

// Words is a parser's error as it should be told: a value of the wrong kind is
// named with its flag and with what the flag takes. Other errors are returned as
// they are.
func Words(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if !is {
		return err
	}
	flag := invalid.GetFlag()
	kind, known := kinds[flag.Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %q: must be %s, and within its bounds", flag.Name, invalid.GetValue(), kind)
}
