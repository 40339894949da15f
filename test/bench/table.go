package main

import (
	"encoding/json"
	"io"
)

func (r *report) print(w io.Writer) { b, _ := json.MarshalIndent(r, "", " "); w.Write(append(b, '\n')) }
