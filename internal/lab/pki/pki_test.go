package pki

import (
	"crypto/x509"
	"net"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

func TestIssue_SignsForTheUsageAndTheNamesOfTheConfig(t *testing.T) {
	authority, err := NewAuthority("test authority")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(cert.Config{
		CommonName: "server", AltNames: cert.AltNames{DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate)
	verify := func(usage x509.ExtKeyUsage, name string) error {
		_, err := certificate.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: name})
		return err
	}
	for _, name := range []string{"localhost", "127.0.0.1"} {
		if err := verify(x509.ExtKeyUsageServerAuth, name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if verify(x509.ExtKeyUsageClientAuth, "localhost") == nil {
		t.Error("the certificate of a server is valid for a client")
	}
	if verify(x509.ExtKeyUsageServerAuth, "another.example") == nil {
		t.Error("the certificate is valid for a name that it does not contain")
	}
	for _, c := range []*x509.Certificate{certificate.Leaf, authority.certificate} {
		if age := time.Since(c.NotBefore); age < clockSkew-time.Minute {
			t.Errorf("%s is valid since %s only", c.Subject, age)
		}
	}
}

func TestNewAuthority_UsesANewKeyEachTime(t *testing.T) {
	first, err := NewAuthority("a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewAuthority("a")
	if err != nil {
		t.Fatal(err)
	}
	if first.key.Equal(second.key) {
		t.Error("two authorities share one key")
	}
}
