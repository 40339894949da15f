// Package pki issues the X.509 certificates of a lab: those of the embedded clusters and
// of the fault proxies.
//
// It creates a certificate authority with [NewAuthority] and signs certificates with
// [Authority.Issue]. Keys are ECDSA P-256, output is PEM. It stores nothing: the caller
// decides which keys are written to disk.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// lifetime is the validity of a certificate. It is longer than any lab is kept.
	lifetime = 10 * 365 * 24 * time.Hour
	// clockSkew is how far NotBefore lies in the past, for clocks that are set back.
	clockSkew = time.Hour
)

// Pair is a certificate and its private key, both PEM encoded.
type Pair struct {
	Certificate, Key []byte
}

// TLS returns the pair for use in a TLS server or client.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Certificate, p.Key) }

// Authority is a self-signed certificate authority.
type Authority struct {
	// Pair is the certificate and the key of the authority.
	Pair

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority creates an authority with a new key.
func NewAuthority(commonName string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	config := cert.Config{CommonName: commonName, NotBefore: time.Now().Add(-clockSkew)}
	certificate, err := cert.NewSelfSignedCACert(config, key)
	if err != nil {
		return nil, err
	}
	pair, err := encode(certificate.Raw, key)
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, certificate: certificate, key: key}, nil
}

// Issue signs a certificate for a new key. The config must name at least one usage.
func (a *Authority) Issue(config cert.Config) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		return Pair{}, err
	}
	now := time.Now()
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(1)),
		Subject:      pkix.Name{CommonName: config.CommonName, Organization: config.Organization},
		DNSNames:     config.AltNames.DNSNames,
		IPAddresses:  config.AltNames.IPs,
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  config.Usages,
	}, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return Pair{}, err
	}
	return encode(signed, key)
}

// encode returns a certificate in DER form and its key as PEM.
func encode(certificate []byte, key *ecdsa.PrivateKey) (Pair, error) {
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Pair{}, err
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := cert.EncodeCertificates(parsed)
	return Pair{Certificate: encoded, Key: encodedKey}, err
}
