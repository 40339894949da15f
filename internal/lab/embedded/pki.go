package embedded

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/reconcile-lab/reconcile-lab/internal/lab"
	"github.com/reconcile-lab/reconcile-lab/internal/lab/pki"
)

// ensurePKI creates the certificate authority of a cluster, the certificate of its API
// server and the one of its administrator. The key of the API server also signs service
// account tokens. The directory is renamed into place, so it is complete or missing.
func ensurePKI(f files) error {
	if _, err := os.Stat(f.path("pki")); err == nil {
		return nil
	}
	temporary, err := os.MkdirTemp(f.dir, ".pki-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()

	authority, err := pki.NewAuthority("reconcile-lab")
	if err != nil {
		return err
	}
	server, err := authority.Issue(cert.Config{
		CommonName: "kube-apiserver",
		AltNames: cert.AltNames{
			DNSNames: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
			IPs:      []net.IP{net.IPv4(127, 0, 0, 1)},
		},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return err
	}
	admin, err := authority.Issue(cert.Config{
		CommonName: "reconcile-lab-admin", Organization: []string{"system:masters"},
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	for name, pair := range map[string]pki.Pair{"ca": authority.Pair, "server": server, "admin": admin} {
		if err := lab.WriteFile(filepath.Join(temporary, name+".crt"), pair.Certificate); err != nil {
			return err
		}
		if err := lab.WriteFile(filepath.Join(temporary, name+".key"), pair.Key); err != nil {
			return err
		}
	}
	return os.Rename(temporary, f.path("pki"))
}

// kubeconfig returns the kubeconfig of the administrator, with embedded certificates.
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
