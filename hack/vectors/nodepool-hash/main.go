// SPDX-License-Identifier: Apache-2.0

// Prints vectors for src/api/hash.ts as JSON: templates of NodePools as they come from the API server, and the hash
// that upstream computes for them. Run it with TZ=UTC (upstream's hash of timeAdded depends on the time zone):
//
//	TZ=UTC go run . > ../../../src/api/hash.vectors.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

type vector struct {
	Name     string          `json:"name"`
	Template json.RawMessage `json:"template"`
	Hash     string          `json:"hash"`
}

func main() {
	var vectors []vector
	seen := map[string]bool{}
	for _, c := range cases() {
		if seen[c.name] {
			fail(c.name, fmt.Errorf("the name is used twice"))
		}
		seen[c.name] = true
		pool := v1.NodePool{}
		if err := json.Unmarshal([]byte(c.template), &pool.Spec.Template); err != nil {
			fail(c.name, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(c.template)); err != nil {
			fail(c.name, err)
		}
		vectors = append(vectors, vector{Name: c.name, Template: compact.Bytes(), Hash: pool.Hash()})
	}
	fmt.Println("[")
	for i, v := range vectors {
		line, err := json.Marshal(v)
		if err != nil {
			fail(v.Name, err)
		}
		comma := ","
		if i == len(vectors)-1 {
			comma = ""
		}
		fmt.Printf("  %s%s\n", line, comma)
	}
	fmt.Println("]")
}

func fail(name string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	os.Exit(1)
}
