package harness

import (
	"context"
	"io"
	"net"
	"sync"
)

// Gate is an address in front of an API server. It can behave as an unreachable member
// does.
type Gate struct {
	target, address string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]struct{}
	working  sync.WaitGroup
}

// NewGate returns a gate whose port is closed. target is host:port.
func NewGate(ctx context.Context, target string) (*Gate, error) {
	// A port that was just free stays so long enough, on a machine's loopback.
	probe, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := probe.Addr().String()
	return &Gate{target: target, address: address, open: map[net.Conn]struct{}{}}, probe.Close()
}

// Address is host:port, the same for the gate's life.
func (g *Gate) Address() string { return g.address }

// Swallow accepts connections and never answers.
func (g *Gate) Swallow(ctx context.Context) error { return g.listen(ctx, false) }

// Forward forwards everything.
func (g *Gate) Forward(ctx context.Context) error { return g.listen(ctx, true) }

// Close refuses connections and breaks those that there are.
func (g *Gate) Close() {
	g.mu.Lock()
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
	for connection := range g.open {
		_ = connection.Close()
	}
	g.mu.Unlock()
	g.working.Wait()
}

func (g *Gate) listen(ctx context.Context, answers bool) error {
	g.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", g.address)
	if err != nil {
		return err
	}
	g.mu.Lock()
	g.listener = listener
	g.mu.Unlock()
	g.working.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if !g.track(connection, listener) {
				_ = connection.Close()
				continue
			}
			if answers {
				g.working.Go(func() { g.forward(connection, listener) })
			}
		}
	})
	return nil
}

// track notes a connection, unless its listener is closed already.
func (g *Gate) track(connection net.Conn, of net.Listener) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != of {
		return false
	}
	g.open[connection] = struct{}{}
	return true
}

func (g *Gate) forward(from net.Conn, of net.Listener) {
	defer g.drop(from)
	to, err := (&net.Dialer{}).Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer g.drop(to)
	if !g.track(to, of) {
		return
	}
	g.working.Go(func() {
		defer g.drop(from)
		_, _ = io.Copy(from, to)
	})
	_, _ = io.Copy(to, from)
}

func (g *Gate) drop(connection net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, connection)
	_ = connection.Close()
}
