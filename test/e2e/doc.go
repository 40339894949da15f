// Package e2e has the end-to-end suites, which use a lab as its users do: they
// run the command line and kubectl, and read from the API servers of hub and
// members. The same suites run on both providers; only those that talk to
// running caches need kind, because the embedded lab's pods are simulated.
//
// They are behind the build tag e2e, so that `go test ./...` starts no clusters:
//
//	make e2e-embedded
//	make e2e-kind
//	E2E_PROVIDER=embedded go test -tags e2e -timeout 40m -v ./test/e2e/...
//
// The suite creates a lab of its own and removes it at the end, also after a failure.
// E2E_LAB=NAME runs on an existing lab with three members, and keeps it; the suites
// remove what they create in it. They stop and start its hub manager.
//
// No assertion is about speed: deadlines only keep a broken run from waiting for
// ever. Suites do not depend on each other; Ginkgo shuffles them.
package e2e
