package membership

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// MemberConfig returns admin access to a member from a kubeconfig file, with the content
// of the certificate files that it names. An empty context selects the current one.
//
// A user with a credential plugin is refused unless allowExec is set: a kubeconfig from
// someone else would otherwise run their program here.
func MemberConfig(file, context string, allowExec bool) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", file, err)
	}
	if clientcmdapi.IsConfigEmpty(raw) {
		return nil, fmt.Errorf("kubeconfig %s is empty", file)
	}
	if context == "" {
		context = raw.CurrentContext
	}
	if context == "" || raw.Contexts[context] == nil {
		return nil, fmt.Errorf("kubeconfig %s has no context %q; pass --context with one of %s", file, context, names(raw.Contexts))
	}
	if user := raw.AuthInfos[raw.Contexts[context].AuthInfo]; user != nil && !allowExec {
		if user.Exec != nil {
			return nil, fmt.Errorf("kubeconfig %s: user %q has the credential plugin %q; pass --allow-exec to run it here, for this command only (the hub gets the token of a ServiceAccount), or use a kubeconfig with a token or certificate",
				file, raw.Contexts[context].AuthInfo, user.Exec.Command)
		}
		if user.AuthProvider != nil {
			return nil, fmt.Errorf("kubeconfig %s: user %q has the auth provider %q, which Kubernetes has removed; use a kubeconfig with a token or certificate",
				file, raw.Contexts[context].AuthInfo, user.AuthProvider.Name)
		}
	}
	cfg, err := clientcmd.NewDefaultClientConfig(*raw, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s, context %s: %w", file, context, err)
	}
	if err := rest.LoadTLSFiles(cfg); err != nil {
		return nil, fmt.Errorf("kubeconfig %s, context %s: %w", file, context, err)
	}
	return cfg, nil
}

func names(contexts map[string]*clientcmdapi.Context) string {
	if len(contexts) == 0 {
		return "(it has none)"
	}
	return strings.Join(slices.Sorted(maps.Keys(contexts)), ", ")
}

// credential returns the kubeconfig for the hub. It needs no file and no program, and its
// bytes depend only on the arguments. server replaces the address of member if it is set.
func credential(member *rest.Config, name, server, token string) ([]byte, error) {
	address, err := serverURL(member, server)
	if err != nil {
		return nil, err
	}
	if member.Insecure {
		return nil, errors.New("the kubeconfig of the member has insecure-skip-tls-verify, so the hub would send its token to an unverified server; replace it with certificate-authority or certificate-authority-data")
	}
	inline := rest.CopyConfig(member)
	if err := rest.LoadTLSFiles(inline); err != nil {
		return nil, fmt.Errorf("read the certificate authority of the member: %w", err)
	}
	cluster := clientcmdapi.NewCluster()
	cluster.Server = address.String()
	cluster.CertificateAuthorityData = inline.CAData
	cluster.TLSServerName = inline.ServerName
	cluster.DisableCompression = inline.DisableCompression
	if inline.Proxy != nil {
		proxy, err := inline.Proxy(&http.Request{URL: address})
		if err != nil {
			return nil, fmt.Errorf("find the proxy of the member: %w", err)
		}
		if proxy != nil {
			cluster.ProxyURL = proxy.String()
		}
	}
	user := clientcmdapi.NewAuthInfo()
	user.Token = token
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo = name, serviceAccount

	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[serviceAccount] = user
	config.Contexts[name] = context
	config.CurrentContext = name
	return clientcmd.Write(*config)
}

// serverURL returns the address in the credential.
func serverURL(member *rest.Config, server string) (*url.URL, error) {
	if server == "" {
		u, _, err := rest.DefaultServerUrlFor(member)
		if err != nil {
			return nil, fmt.Errorf("the member's server %q: %w", member.Host, err)
		}
		server = u.String()
	}
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("the member's server %q: %w", server, err)
	}
	if u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the member's server %q is not an https address, so a token could be read on the way; pass --server with one such as https://10.0.0.1:6443", server)
	}
	return u, nil
}
