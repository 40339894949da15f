package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotReady    = 3
	exitFailed      = 4
	exitUnreachable = 5
	exitInterrupted = 130
)

// exitCodes is the table that help prints. docs/cli.md repeats it.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitOK, "success; for apply: every cache is ready"},
	{exitError, "any other error"},
	{exitUsage, "invalid usage or input, refused before any change"},
	{exitNotReady, "not ready in time (--timeout); it may still become ready"},
	{exitFailed, "failed: blocked until someone follows the hint"},
	{exitUnreachable, "the hub is unreachable"},
	{exitInterrupted, "interrupted by Ctrl-C or SIGTERM"},
}

func exitCodeHelp() string {
	var b strings.Builder
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
	}
	return b.String()
}

// codedError is an error with an exit code.
type codedError struct {
	error
	code int
}

func (e codedError) Unwrap() error { return e.error }

func withCode(code int, err error) error {
	if err == nil {
		return nil
	}
	return codedError{err, code}
}

func badInput(format string, args ...any) error {
	return withCode(exitUsage, fmt.Errorf(format, args...))
}

// exitCode returns the exit code for the error of a command.
func exitCode(err error) int {
	var coded codedError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUnreachable(err):
		return exitUnreachable
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return exitUsage
	}
	return exitError
}

// isUnreachable reports whether the hub did not answer or was unavailable. A hub
// that answered with a refusal is reachable.
func isUnreachable(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return apierrors.IsServiceUnavailable(err)
	}
	var urlErr *url.Error
	var netErr net.Error
	return errors.As(err, &urlErr) || errors.As(err, &netErr)
}
