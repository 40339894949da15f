package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Network describes the faults of every connection.
type Network struct {
	// Drop drops all bytes in both directions. Connections are accepted and stay open.
	Drop bool `json:"drop,omitempty"`
	// Reset resets each connection at its first byte.
	Reset bool `json:"reset,omitempty"`
	// Latency is added to each response, plus or minus Jitter.
	Latency time.Duration `json:"latency,omitempty"`
	Jitter  time.Duration `json:"jitter,omitempty"`
	// Bandwidth limits each direction of each connection, in KB/s.
	Bandwidth int `json:"bandwidth,omitempty"`
}

// toxic is the JSON form of a fault in Toxiproxy.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Attributes map[string]any `json:"attributes"`
}

const (
	upstream   = "upstream"
	downstream = "downstream"
)

// toxics returns the faults in the form of Toxiproxy.
func (n Network) toxics() []toxic {
	var all []toxic
	add := func(kind, stream string, attributes map[string]any) {
		all = append(all, toxic{kind + "-" + stream, kind, stream, attributes})
	}
	if n.Latency > 0 || n.Jitter > 0 {
		add("latency", downstream, map[string]any{"latency": n.Latency.Milliseconds(), "jitter": n.Jitter.Milliseconds()})
	}
	if n.Bandwidth > 0 {
		add("bandwidth", upstream, map[string]any{"rate": n.Bandwidth})
		add("bandwidth", downstream, map[string]any{"rate": n.Bandwidth})
	}
	if n.Drop {
		// With timeout 0, Toxiproxy drops the bytes and keeps the connection open.
		add("timeout", upstream, map[string]any{"timeout": 0})
		add("timeout", downstream, map[string]any{"timeout": 0})
	}
	if n.Reset {
		add("reset_peer", upstream, map[string]any{"timeout": 0})
		add("reset_peer", downstream, map[string]any{"timeout": 0})
	}
	return all
}

// newToxiproxy returns a proxy from listen to target, which is not started.
func newToxiproxy(listen, target string) *toxiproxy.Proxy {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	return toxiproxy.NewProxy(server, "member", listen, target)
}

// setNetwork replaces the faults of the network. The end of Drop closes its connections,
// since they have lost bytes.
func setNetwork(ctx context.Context, p *toxiproxy.Proxy, n Network) error {
	p.Toxics.ResetToxics(ctx)
	for _, t := range n.toxics() {
		content, err := json.Marshal(t)
		if err != nil {
			return err
		}
		if _, err := p.Toxics.AddToxicJson(bytes.NewReader(content)); err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	return nil
}
