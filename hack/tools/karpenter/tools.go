//go:build tools

// Package tools names the program that hack/tools/tools.ts builds from this module, upstream's controller for KWOK, and
// what upstream's end-to-end suite (built by `go test -c`) imports.
package tools

import (
	_ "sigs.k8s.io/karpenter/kwok"
	_ "sigs.k8s.io/karpenter/test/pkg/environment/common"
)
