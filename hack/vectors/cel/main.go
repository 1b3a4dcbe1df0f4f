// SPDX-License-Identifier: Apache-2.0

// Prints test vectors for src/kube/cel.ts: what the CEL environment of kube-apiserver makes of the expressions in
// expressions.txt. Each line is an expression on the variable `self` (see `self` below); empty lines and # are skipped.
// Run: go run . > ../../../src/kube/cel.vectors.json
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

var self = map[string]any{
	"i": int64(5), "neg": int64(-7), "big": int64(9007199254740993), "d": 2.5, "whole": 4.0, "s": "hello", "empty": "", "t": true, "n": nil,
	"ints": []any{int64(3), int64(1), int64(2)}, "strings": []any{"b", "a", "c"}, "none": []any{}, "uni": "a😀é",
	"m": map[string]any{"a": int64(1), "b": int64(2)}, "nested": map[string]any{"x": map[string]any{"y": "z"}},
	"reqs": []any{
		map[string]any{"key": "a", "operator": "In", "values": []any{"x", "y"}},
		map[string]any{"key": "b", "operator": "Gt", "values": []any{"5"}, "minValues": int64(1)},
		map[string]any{"key": "c", "operator": "Exists"},
	},
}

type row struct {
	Expression string `json:"e"`
	Result     any    `json:"r,omitempty"`
	Type       string `json:"t,omitempty"`
	Error      string `json:"error,omitempty"`
	// Refused when compiling: by the grammar or for a name that is not there.
	Refused bool `json:"refused,omitempty"`
}

func main() {
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("self", cel.DynType)},
	})
	if err != nil {
		panic(err)
	}
	file, err := os.Open("expressions.txt")
	if err != nil {
		panic(err)
	}
	var rows []row
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if r := evaluate(env.StoredExpressionsEnv(), text); r.Expression != "" {
			rows = append(rows, r)
		}
	}
	fmt.Println("[")
	for i, r := range rows {
		line, _ := json.Marshal(r)
		fmt.Printf("%s%s\n", line, map[bool]string{true: "", false: ","}[i == len(rows)-1])
	}
	fmt.Println("]")
}

func evaluate(env *cel.Env, text string) row {
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		message := issues.Err().Error()
		if strings.Contains(message, "no matching overload") || strings.Contains(message, "expected type") {
			fmt.Fprintln(os.Stderr, "left out, a type error that only a type checker can find:", text)
			return row{}
		}
		return row{Expression: text, Refused: true}
	}
	program, err := env.Program(ast)
	if err != nil {
		// A constant expression is evaluated here already.
		return row{Expression: text, Error: err.Error()}
	}
	out, _, err := program.Eval(map[string]any{"self": self})
	if err != nil {
		return row{Expression: text, Error: err.Error()}
	}
	return row{Expression: text, Result: plain(out), Type: out.Type().TypeName()}
}

func plain(value ref.Val) any {
	switch v := value.(type) {
	case types.Int:
		return json.Number(fmt.Sprint(int64(v)))
	case types.Uint:
		return json.Number(fmt.Sprint(uint64(v)))
	case types.Double:
		if text, err := json.Marshal(float64(v)); err == nil {
			return json.RawMessage(text)
		}
		return fmt.Sprint(float64(v))
	case types.Bool, types.String, types.Bytes:
		return v.Value()
	case types.Null:
		return "null"
	case types.Timestamp, types.Duration:
		return v.ConvertToType(types.StringType).Value()
	case *types.Optional:
		if !v.HasValue() {
			return "none"
		}
		return []any{plain(v.GetValue())}
	case traits.Mapper:
		out := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			out[fmt.Sprint(key.Value())] = plain(v.Get(key))
		}
		return out
	case traits.Lister:
		out := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			out = append(out, plain(it.Next()))
		}
		return out
	case *types.Type:
		return v.TypeName()
	}
	return "opaque"
}
