package embedded

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
)

// lifetime of certificates: longer than anyone keeps a lab.
const lifetime = 10 * 365 * 24 * time.Hour

// ensurePKI makes a certificate authority with a certificate for the API server,
// whose key signs service account tokens too, and one for the administrator. The
// folder appears complete or not at all.
func ensurePKI(f files) error {
	if _, err := os.Stat(f.path("pki")); err == nil {
		return nil
	}
	temporary, err := os.MkdirTemp(f.dir, ".pki-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()

	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "reconcile-lab"},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	caKey, err := issue(temporary, "ca", ca, nil, nil)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if _, err := issue(temporary, "server", server, ca, caKey); err != nil {
		return err
	}
	admin := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "reconcile-lab-admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if _, err := issue(temporary, "admin", admin, ca, caKey); err != nil {
		return err
	}
	return os.Rename(temporary, f.path("pki"))
}

// issue writes NAME.crt and NAME.key, signed by the parent or by itself.
func issue(dir, name string, certificate, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	// An hour back, for clocks that are set back a little.
	certificate.NotBefore = time.Now().Add(-time.Hour)
	certificate.NotAfter = certificate.NotBefore.Add(lifetime)
	if parent == nil {
		parent, parentKey = certificate, key
	}
	signed, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, err
	}
	encodedKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := lab.WriteFile(filepath.Join(dir, name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})); err != nil {
		return nil, err
	}
	return key, lab.WriteFile(filepath.Join(dir, name+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encodedKey}))
}

// kubeconfig is the administrator's, with everything inside it.
func kubeconfig(f files, server, cluster string) ([]byte, error) {
	var content [3][]byte
	for i, name := range []string{"ca.crt", "admin.crt", "admin.key"} {
		var err error
		if content[i], err = os.ReadFile(f.pki(name)); err != nil {
			return nil, err
		}
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: content[0]}
	config.AuthInfos[cluster] = &clientcmdapi.AuthInfo{ClientCertificateData: content[1], ClientKeyData: content[2]}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	config.CurrentContext = cluster
	return clientcmd.Write(*config)
}
