package proxy

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
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
	"k8s.io/client-go/util/cert"

	"github.com/reconcile-lab/reconcile-lab/internal/apirequest"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/fault/rules"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/pki"
)

// Behavior describes all faults of a proxy.
type Behavior struct {
	Rules   []rules.Rule `json:"rules,omitempty"`
	Network Network      `json:"network"`
}

// Use counts the requests through a proxy.
type Use struct {
	// Requests is the number of requests so far, and Watches the number of open watches.
	Requests int64 `json:"requests"`
	Watches  int64 `json:"watches"`
	// Probes is the number of requests for /readyz while at least one watch has been open. The
	// hub tests a new address with one probe, fills its caches, and then closes the earlier
	// connection. So the next probe shows that it uses the new address.
	Probes int64 `json:"probes"`
	// Acted is the number of requests on which each rule has acted.
	Acted []int `json:"acted,omitempty"`
}

// Options are the options of Start.
type Options struct {
	// Host is the IP address to listen on. The port is chosen.
	Host string
	// Member is the connection to the API server. Its credential is not used.
	Member *rest.Config
	// Seed is the seed of random choices.
	Seed uint64
}

// Proxy is a running proxy between the hub and a member.
type Proxy struct {
	outer     *toxiproxy.Proxy
	inner     *http.Server
	listener  net.Listener
	authority []byte
	rules     *rules.Transport

	requests, watches, probes atomic.Int64
}

// Start starts a proxy on a free port.
func Start(o Options) (*Proxy, error) {
	address := net.ParseIP(o.Host)
	if address == nil || address.IsUnspecified() {
		return nil, fmt.Errorf("address %q: must be the IP address of one interface", o.Host)
	}
	target, err := url.Parse(o.Member.Host)
	if err != nil {
		return nil, fmt.Errorf("server of the member %q: %w", o.Member.Host, err)
	}
	transport, err := rest.TransportFor(anonymous(o.Member))
	if err != nil {
		return nil, err
	}
	certificate, authority, err := issueCertificate(address)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, authority: authority, rules: rules.New(transport, o.Seed)}
	p.inner = &http.Server{
		Handler:           p.handler(target),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
		// Faults break handshakes, so these errors are expected.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = p.inner.ServeTLS(listener, "", "") }()
	p.outer = newToxiproxy(net.JoinHostPort(o.Host, "0"), listener.Addr().String())
	if err := p.outer.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", o.Host, err), p.inner.Close())
	}
	return p, nil
}

// issueCertificate returns a server certificate for an address, and the authority (PEM)
// that signed it.
func issueCertificate(address net.IP) (certificate tls.Certificate, authority []byte, err error) {
	a, err := pki.NewAuthority("reconcile-lab faults")
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pair, err := a.Issue(cert.Config{
		CommonName: "reconcile-lab fault proxy",
		AltNames:   cert.AltNames{IPs: []net.IP{address}},
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certificate, err = pair.TLS()
	return certificate, a.Certificate, err
}

// anonymous returns the connection to the member without a credential.
func anonymous(member *rest.Config) *rest.Config {
	c := rest.AnonymousClientConfig(member)
	c.QPS = -1
	return c
}

// handler counts requests and forwards them to the target.
func (p *Proxy) handler(target *url.URL) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: p.rules,
		ErrorLog:  log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if errors.Is(err, rules.ErrResponseLost) {
				// The panic resets the stream, so that the client gets an error at once.
				panic(http.ErrAbortHandler)
			}
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		if apirequest.Parse(r).Verb == "watch" {
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

// Address returns the listen address, host:port.
func (p *Proxy) Address() string { return p.outer.Listen }

// Authority returns the certificate authority of the proxy (PEM).
func (p *Proxy) Authority() []byte { return p.authority }

// Set replaces the faults.
func (p *Proxy) Set(ctx context.Context, b Behavior) error {
	p.rules.Set(b.Rules...)
	return setNetwork(ctx, p.outer, b.Network)
}

// Use returns the counters of requests.
func (p *Proxy) Use() Use {
	return Use{Requests: p.requests.Load(), Watches: p.watches.Load(), Probes: p.probes.Load(), Acted: p.rules.Acted()}
}

// Close stops the proxy and closes every connection.
func (p *Proxy) Close() error {
	p.outer.Stop()
	return p.inner.Close()
}

// Control returns the handler of the control endpoint. PUT sets the Behavior; GET and PUT
// return the Use. The bearer token must be the secret.
func (p *Proxy) Control(secret string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+secret)) != 1 {
			http.Error(w, "wrong bearer token", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPut {
			var b Behavior
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
