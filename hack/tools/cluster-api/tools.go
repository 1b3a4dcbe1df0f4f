//go:build tools

// Package tools names the program that hack/tools/tools.ts builds from this module.
package tools

import _ "sigs.k8s.io/cluster-api"
