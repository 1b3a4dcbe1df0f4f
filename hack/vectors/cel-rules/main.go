// SPDX-License-Identifier: Apache-2.0

// What kube-apiserver makes of the CEL rules of CRDs before it stores them.
//
//	go run . declarations > ../../../src/kube/cel-declarations.json   every function and its overloads
//	go run . rules        > ../../../src/kube/schema/rules.vectors.json   verdict and cost of each rule of cases.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"

	"github.com/google/cel-go/checker"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	rules "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// New expressions may use what the release before knew: a cluster can be rolled back.
var base = environment.MustBaseEnvSet(version.MajorMinor(1, 35))

func main() {
	switch os.Args[1] {
	case "declarations":
		declarations()
	case "rules":
		vectors()
	}
}

func declarations() {
	table := map[string][]string{}
	for name, function := range base.NewExpressionsEnv().Functions() {
		for _, overload := range function.OverloadDecls() {
			var arguments []string
			for _, argument := range overload.ArgTypes() {
				arguments = append(arguments, checker.FormatCELType(argument))
			}
			style := "f"
			if overload.IsMemberFunction() {
				style = "m"
			}
			row := fmt.Sprintf("%s %s %s -> %s", style, overload.ID(), strings.Join(arguments, ", "), checker.FormatCELType(overload.ResultType()))
			table[name] = append(table[name], row)
		}
	}
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Println("{")
	for i, name := range names {
		fmt.Printf(" %s: %s%s\n", plain(name), plain(table[name]), map[bool]string{true: "", false: ","}[i == len(names)-1])
	}
	fmt.Println("}")
}

type set struct {
	Schema json.RawMessage `json:"schema"`
	Root   bool            `json:"root,omitempty"`
	Rules  []string        `json:"rules"`
}

type row struct {
	Rule  string `json:"rule"`
	Cost  uint64 `json:"cost,omitempty"`
	Error string `json:"error,omitempty"`
}

// Names of types are made anew for each rule.
var generated = regexp.MustCompile(`selfType\d+`)

func vectors() {
	text, err := os.ReadFile("cases.json")
	must(err)
	var sets []set
	must(json.Unmarshal(text, &sets))
	fmt.Println("[")
	for i, each := range sets {
		var schema bytes.Buffer
		must(json.Compact(&schema, each.Schema))
		var lines []string
		for _, rule := range each.Rules {
			judged := judge(each, rule)
			lines = append(lines, "  "+plain(judged))
			// What is no truth value has a cost too.
			if strings.HasSuffix(judged.Error, "must evaluate to a bool") {
				lines = append(lines, "  "+plain(judge(each, "dyn("+rule+") == null")))
			}
		}
		fmt.Printf(" {\"root\": %v, \"schema\": %s, \"rules\": [\n%s\n ]}%s\n", each.Root, schema.String(), strings.Join(lines, ",\n"), map[bool]string{true: "", false: ","}[i == len(sets)-1])
	}
	fmt.Println("]")
}

func judge(each set, rule string) row {
	var v1 apiextensionsv1.JSONSchemaProps
	must(json.Unmarshal(each.Schema, &v1))
	v1.XValidations = []apiextensionsv1.ValidationRule{{Rule: rule}}
	var internal apiextensions.JSONSchemaProps
	must(apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &internal, nil))
	schema, err := structural.NewStructural(&internal)
	must(err)
	results, err := rules.Compile(schema, model.SchemaDeclType(schema, each.Root), celconfig.PerCallLimit, base, rules.NewExpressionsEnvLoader())
	must(err)
	result := results[0]
	if result.Error != nil {
		return row{Rule: rule, Error: generated.ReplaceAllString(result.Error.Detail, "selfType")}
	}
	return row{Rule: rule, Cost: result.MaxCost}
}

func plain(value any) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(value))
	return strings.TrimSpace(out.String())
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
