//go:build tools

// Package tools pins programs that are built from other modules as they are.
package tools

import _ "github.com/opencontainers/runc"
