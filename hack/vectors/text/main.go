// SPDX-License-Identifier: Apache-2.0

// Prints test vectors for what src/kube reads from text: label and field selectors, durations, times and JSON patches.
// A row is [kind, input, error] or [kind, input, "", output].
// Run: go run . > ../../../src/kube/text.vectors.json
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Document is what the JSON patches are applied to.
const Document = `{"a":1,"l":[1,{"x":2},3],"o":{"k":"v"},"a/b":5,"m~n":6}`

var r = rand.New(rand.NewSource(3))

func main() {
	kinds := []struct {
		name  string
		count int
		make  func() string
		read  func(string) (string, error)
	}{
		{"label", 250, words(9, "a", "b", "in", "notin", "=", "==", "!=", "!", "(", ")", ",", " ", ">", "<", "5", "x.y/z", "a b", "-", "$", "\t"), label},
		{"field", 200, words(7, "a", "b.c", "=", "==", "!=", ",", "\\", "\\,", "\\=", "x", "é"), field},
		{"duration", 300, words(6, "1", "2", "10", "h", "m", "s", "ms", "us", "ns", "µs", ".", "-", "+", "0", "d", "99999999", " "), duration},
		{"time", 300, instant, parseTime},
		{"patch", 330, patch, applyPatch},
	}
	var lines []string
	for _, kind := range kinds {
		seen := map[string]bool{}
		for len(seen) < kind.count {
			input := kind.make()
			if seen[input] {
				continue
			}
			seen[input] = true
			if row := try(kind.name, input, kind.read); row != nil {
				line, _ := json.Marshal(row)
				lines = append(lines, string(line))
			}
		}
	}
	fmt.Printf("[\n%s\n]\n", strings.Join(lines, ",\n"))
}

// try gives no row where the library panics.
func try(name, input string, read func(string) (string, error)) (row []string) {
	defer func() {
		if recover() != nil {
			row = nil
		}
	}()
	output, err := read(input)
	if err != nil {
		return []string{name, input, err.Error()}
	}
	return []string{name, input, "", output}
}

func words(max int, from ...string) func() string {
	return func() string {
		var b strings.Builder
		for n := r.Intn(max); n >= 0; n-- {
			b.WriteString(from[r.Intn(len(from))])
		}
		return b.String()
	}
}

func label(s string) (string, error) {
	selector, err := labels.Parse(s)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

func field(s string) (string, error) {
	selector, err := fields.ParseSelector(s)
	if err != nil {
		return "", err
	}
	return selector.String(), nil
}

func duration(s string) (string, error) {
	d, err := time.ParseDuration(s)
	return d.String(), err
}

func instant() string {
	var b strings.Builder
	for _, part := range []string{"2024", "-", "01", "-", "02", "T", "03", ":", "04", ":", "05", "Z"} {
		if r.Intn(14) == 0 {
			part = []string{"13", "32", "60", "", "x", "+01:00", ".5", ".123456789", "-23:59", "00", "29", "30", "31"}[r.Intn(13)]
		}
		b.WriteString(part)
	}
	return b.String()
}

func parseTime(s string) (string, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		// The place of the mistake is not compared.
		return "", fmt.Errorf("parsing time")
	}
	return t.UTC().Format(time.RFC3339Nano), nil
}

func patch() string {
	paths := []string{"/a", "/b", "/l/0", "/l/1", "/l/-", "/l/9", "/l/x", "/o/k", "/o", "", "/o/q/r", "/a~1b", "/m~0n", "/l/-1", "/l"}
	kinds := []string{"add", "remove", "replace", "move", "copy", "test", "bad"}
	values := []any{1, "x", nil, []any{1}, map[string]any{"z": 1}}
	var operations []map[string]any
	for n := r.Intn(3); n >= 0; n-- {
		operation := map[string]any{"op": kinds[r.Intn(len(kinds))], "path": paths[r.Intn(len(paths))]}
		if r.Intn(4) > 0 {
			operation["value"] = values[r.Intn(len(values))]
		}
		if r.Intn(3) > 0 {
			operation["from"] = paths[r.Intn(len(paths))]
		}
		if r.Intn(20) == 0 {
			delete(operation, "path")
		}
		operations = append(operations, operation)
	}
	text, _ := json.Marshal(operations)
	return string(text)
}

func applyPatch(s string) (string, error) {
	p, err := jsonpatch.DecodePatch([]byte(s))
	if err != nil {
		return "", err
	}
	result, err := p.Apply([]byte(Document))
	return string(result), err
}
