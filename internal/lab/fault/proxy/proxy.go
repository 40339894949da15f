package proxy

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"k8s.io/client-go/rest"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/rules"
)

// Behaviour is everything that a proxy does wrong.
type Behaviour struct {
	Rules   []rules.Rule `json:"rules,omitempty"`
	Network Network      `json:"network"`
}

// Use is what the hub does with the proxy.
type Use struct {
	// Requests that were begun, and Watches that are open.
	Requests int64 `json:"requests"`
	Watches  int64 `json:"watches"`
	// Probes of /readyz that were begun while watches have been open without a break. The
	// hub tries a way with one probe and fills its caches before it gives up another; the
	// next probe comes when it has.
	Probes int64 `json:"probes"`
	// Acted is how many requests each rule has acted on.
	Acted []int `json:"acted,omitempty"`
}

// Proxy stands between the hub and a member.
type Proxy struct {
	outer     *toxiproxy.Proxy
	inner     *http.Server
	listener  net.Listener
	authority []byte
	rules     *rules.Transport

	requests, watches, probes atomic.Int64
}

// Start listens at host, an IP address of this machine, at a port that is free, and
// forwards to the API server of member, whose own credential is not used.
func Start(host string, member *rest.Config, seed uint64) (*Proxy, error) {
	address := net.ParseIP(host)
	if address == nil || address.IsUnspecified() {
		return nil, fmt.Errorf("address %q: give the IP address of one interface", host)
	}
	target, err := url.Parse(member.Host)
	if err != nil {
		return nil, fmt.Errorf("the member's server %q: %w", member.Host, err)
	}
	transport, err := rest.TransportFor(anonymous(member))
	if err != nil {
		return nil, err
	}
	certificate, authority, err := issue(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, authority: authority, rules: rules.New(transport, seed)}
	p.inner = &http.Server{
		Handler:           p.handler(target),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
		// Handshakes that a fault has broken are no news.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = p.inner.ServeTLS(listener, "", "") }()
	p.outer = newToxiproxy(net.JoinHostPort(host, "0"), listener.Addr().String())
	if err := p.outer.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("listen at %s: %w", host, err), p.inner.Close())
	}
	return p, nil
}

// anonymous is the way to the member, with nobody's credential.
func anonymous(member *rest.Config) *rest.Config {
	c := rest.AnonymousClientConfig(member)
	c.QPS = -1
	return c
}

func (p *Proxy) handler(target *url.URL) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: p.rules,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, rules.ErrLost) {
				// Breaks the stream: the client learns that there is no answer, at once.
				panic(http.ErrAbortHandler)
			}
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		if rules.Parse(r).Verb == "watch" {
			p.watches.Add(1)
			defer func() {
				if p.watches.Add(-1) == 0 {
					p.probes.Store(0)
				}
			}()
		}
		if strings.HasSuffix(r.URL.Path, "/readyz") && p.watches.Load() > 0 {
			p.probes.Add(1)
		}
		forward.ServeHTTP(w, r)
	})
}

// Address is where it listens, host:port.
func (p *Proxy) Address() string { return p.outer.Listen }

// Authority is what signed its certificate, in PEM.
func (p *Proxy) Authority() []byte { return p.authority }

// Set replaces what it does wrong.
func (p *Proxy) Set(ctx context.Context, b Behaviour) error {
	p.rules.Set(b.Rules...)
	return setNetwork(ctx, p.outer, b.Network)
}

// Use tells what came through.
func (p *Proxy) Use() Use {
	return Use{Requests: p.requests.Load(), Watches: p.watches.Load(), Probes: p.probes.Load(), Acted: p.rules.Acted()}
}

// Close ends every connection.
func (p *Proxy) Close() error {
	p.outer.Stop()
	return p.inner.Close()
}

// Control lets another process of this user set the behaviour (PUT) and ask for the
// use (GET), with a secret that both know.
func (p *Proxy) Control(secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+secret)) != 1 {
			http.Error(w, "wrong secret", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPut {
			var b Behaviour
			err := json.NewDecoder(r.Body).Decode(&b)
			if err == nil {
				err = p.Set(r.Context(), b)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		_ = json.NewEncoder(w).Encode(p.Use())
	})
}
