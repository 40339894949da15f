package membership

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const kubeconfigYAML = `apiVersion: v1
kind: Config
current-context: admin
clusters:
- name: c
  cluster: {server: "https://10.0.0.1:6443", certificate-authority: pki/ca.crt, tls-server-name: kubernetes}
contexts:
- {name: admin, context: {cluster: c, user: admin}}
- {name: cloud, context: {cluster: c, user: cloud}}
- {name: old, context: {cluster: c, user: old}}
users:
- name: admin
  user: {client-certificate: pki/admin.crt, client-key: pki/admin.key}
- name: cloud
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: cloud-login, interactiveMode: Never}}
- name: old
  user: {auth-provider: {name: gcp}}
`

// writeKubeconfig creates a folder with the kubeconfig and the files that it names.
func writeKubeconfig(t *testing.T, without string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"config": kubeconfigYAML, "pki/ca.crt": "CA", "pki/admin.crt": "CERT", "pki/admin.key": "KEY", "empty": "",
	} {
		if name == without {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMemberConfig_ReadsTheFilesThatTheKubeconfigNames(t *testing.T) {
	cfg, err := MemberConfig(filepath.Join(writeKubeconfig(t, ""), "config"), "", false)
	if err != nil {
		t.Fatal(err)
	}
	if string(cfg.CAData) != "CA" || string(cfg.CertData) != "CERT" || string(cfg.KeyData) != "KEY" {
		t.Errorf("certificates are not inlined: CA %q, certificate %q, key %q", cfg.CAData, cfg.CertData, cfg.KeyData)
	}
}

func TestMemberConfig_RefusesWhatTheHubCannotUse(t *testing.T) {
	for _, tc := range []struct {
		reason, without, file, context string
		allowExec                      bool
		want                           string
	}{
		{reason: "a credential plugin", context: "cloud", want: `has the credential plugin "cloud-login"; pass --allow-exec`},
		{reason: "no credential plugin that is allowed", context: "cloud", allowExec: true},
		{reason: "an auth provider, which Kubernetes has removed", context: "old", want: `auth provider "gcp"`},
		{reason: "an unknown context, and names the known ones", context: "nope", want: `no context "nope"; pass --context with one of admin, cloud, old`},
		{reason: "a kubeconfig that names a missing file", without: "pki/ca.crt", want: "ca.crt"},
		{reason: "an empty kubeconfig", file: "empty", want: "is empty"},
		{reason: "a missing kubeconfig", file: "nope", want: "no such file"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = "config"
			}
			_, err := MemberConfig(filepath.Join(writeKubeconfig(t, tc.without), file), tc.context, tc.allowExec)
			expect(t, err, tc.want)
		})
	}
}

func TestCredential_IsSelfContained(t *testing.T) {
	dir := writeKubeconfig(t, "")
	member := &rest.Config{
		Host: "https://10.0.0.1:6443",
		TLSClientConfig: rest.TLSClientConfig{
			CAFile: filepath.Join(dir, "pki/ca.crt"), CertData: []byte("CERT"), KeyData: []byte("KEY"), ServerName: "kubernetes",
		},
		Proxy: func(*http.Request) (*url.URL, error) { return url.Parse("http://proxy:3128") },
	}
	data, err := credential(member, "eu-1", "", "TOKEN")
	if err != nil {
		t.Fatal(err)
	}
	again, err := credential(member, "eu-1", "", "TOKEN")
	if err != nil || string(again) != string(data) {
		t.Errorf("the same input has another result: %v\n%s\n%s", err, data, again)
	}
	raw, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := raw.Clusters["eu-1"], raw.AuthInfos["reconcile-lab"]
	if cluster.Server != "https://10.0.0.1:6443" || string(cluster.CertificateAuthorityData) != "CA" || cluster.CertificateAuthority != "" ||
		cluster.TLSServerName != "kubernetes" || cluster.ProxyURL != "http://proxy:3128" {
		t.Errorf("cluster: %+v", cluster)
	}
	if user.Token != "TOKEN" || len(user.ClientKeyData) > 0 || len(user.ClientCertificateData) > 0 {
		t.Errorf("the user must have the token and nothing of the admin's: %+v", user)
	}
	if _, err := clientcmd.RESTConfigFromKubeConfig(data); err != nil {
		t.Errorf("it is not usable: %v", err)
	}
}

func TestCredential_HasAnAddressThatTheHubCanUse(t *testing.T) {
	for _, tc := range []struct {
		reason         string
		member         rest.Config
		server         string
		want, wantFail string
	}{
		{reason: "is the member's", member: rest.Config{Host: "https://a:1"}, want: "https://a:1"},
		{reason: "keeps a path", member: rest.Config{Host: "https://a/k8s/clusters/c-1"}, want: "https://a/k8s/clusters/c-1"},
		{reason: "is https where TLS is set up and no scheme given", member: rest.Config{Host: "a:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}}, want: "https://a:1"},
		{reason: "is the one given for the hub", member: rest.Config{Host: "https://127.0.0.1:1"}, server: "https://10.0.0.7:6443", want: "https://10.0.0.7:6443"},
		{reason: "may not be plain http", member: rest.Config{Host: "http://a:1"}, wantFail: "not an https address"},
		{reason: "may not lack a scheme when given", member: rest.Config{Host: "https://a"}, server: "10.0.0.7:6443", wantFail: "10.0.0.7:6443"},
		{reason: "may not skip the verification of the certificate", member: rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, wantFail: "insecure-skip-tls-verify"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			data, err := credential(&tc.member, "eu-1", tc.server, "TOKEN")
			expect(t, err, tc.wantFail)
			if tc.wantFail != "" {
				return
			}
			raw, err := clientcmd.Load(data)
			if err != nil {
				t.Fatal(err)
			}
			if got := raw.Clusters["eu-1"].Server; got != tc.want {
				t.Errorf("server %s, want %s", got, tc.want)
			}
		})
	}
}
