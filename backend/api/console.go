package api

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed console
var consoleFiles embed.FS

// console serves the page and nothing else of the machine.
func console() http.Handler {
	files, err := fs.Sub(consoleFiles, "console")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	return http.FileServerFS(files)
}
