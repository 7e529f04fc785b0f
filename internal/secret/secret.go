// Package secret reads secrets, and addresses that may hold one, wherever they come
// from: the environment, a file, an option. What editors, shells and forms leave
// around a text is no part of it, so that both halves of the shop, and whoever else
// has the secret, mean the same.
package secret

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// byteOrderMark is what some editors put in front of a text in UTF-8.
const byteOrderMark = '\ufeff'

// ErrEmpty reports a secret of which nothing is left.
var ErrEmpty = errors.New("is empty; give it a value, or unset it")

// Clean takes blanks, line ends and byte order marks off both ends of text. What is
// left must be a text of one line, or of several if it is in PEM. Errors never show
// any of it; they are to follow the name of where it comes from.
func Clean(text string) (string, error) {
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		return "", errors.New("is in UTF-16; save it as UTF-8")
	}
	if !utf8.ValidString(text) {
		return "", errors.New("is not a text in UTF-8; write bytes in base64 or hex")
	}
	text = strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == byteOrderMark })
	if text == "" {
		return "", ErrEmpty
	}
	inPEM := strings.HasPrefix(text, "-----BEGIN")
	for _, r := range text {
		if r == byteOrderMark || unicode.IsControl(r) && (!inPEM || r != '\n' && r != '\r' && r != '\t') {
			return "", fmt.Errorf("has the character U+%04X inside, such as a line end between two values; write it on one line", r)
		}
	}
	return text, nil
}

// Named is Clean of what is named so; errors begin with the name.
func Named(name, text string) (string, error) {
	text, err := Clean(text)
	if err != nil {
		return "", fmt.Errorf("%s %w", name, err)
	}
	return text, nil
}

// Environment reads the variable name, or the file that the variable with _FILE
// behind it names. Empty if neither is set. lookup is os.LookupEnv.
func Environment(lookup func(string) (string, bool), name string) (string, error) {
	value, set := lookup(name)
	path, byFile := lookup(name + "_FILE")
	switch {
	case set && byFile:
		return "", fmt.Errorf("%s and %s_FILE are both set; set one", name, name)
	case set:
		return Named(name, value)
	case !byFile:
		return "", nil
	}
	path, err := Named(name+"_FILE", path)
	if err != nil {
		return "", err
	}
	return File(name+"_FILE", path)
}

// File reads a secret from a file that the option or variable name says.
func File(name, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s %q: must be a readable file: %w", name, path, err)
	}
	return Named(fmt.Sprintf("%s %q: the file", name, path), string(content))
}
