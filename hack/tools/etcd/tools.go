//go:build tools

// Package tools names the program that hack/tools/build.ts builds from this module.
package tools

import _ "go.etcd.io/etcd/server/v3"
