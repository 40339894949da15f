// Package faults injects every fault into every request of the hub manager against
// real API servers, and asserts that each run ends as a clean one does.
package faults

import (
	_ "github.com/Shopify/toxiproxy/v2" // used by the lab's fault proxy
	_ "pgregory.net/rapid"
)
