package inventory

import (
	"errors"
	"strings"
	"testing"
)

const kubeconfigHead = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
`

// The Secret of a member must not let its writer run a program in the hub, or read a file
// of it.
func TestRestConfig_RefusesACredentialThatRunsAProgramOrReadsAFile(t *testing.T) {
	const plain = "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
	user := func(fields string) string {
		return kubeconfigHead + plain + "users: [{name: u, user: {" + fields + "}}]\n"
	}
	for _, c := range []struct {
		name, kubeconfig string
		want             error
		says             string
	}{
		{"a token", user("token: t"), nil, ""},
		{"a certificate", user("client-certificate-data: eA==, client-key-data: eA=="), nil, ""},
		{"nothing", "", errNoCredential, ""},
		{"no YAML", "{", errCredential, ""},
		{"no context", "apiVersion: v1\nkind: Config\n", errCredential, ""},
		{"a program", user("exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}"), errCredential, "users[u]"},
		{"an auth provider", user("auth-provider: {name: gcp}"), errCredential, "users[u]"},
		{"a token of a file", user("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), errCredential, "users[u]"},
		{"a certificate of a file", user("client-certificate: /etc/passwd"), errCredential, "users[u]"},
		{"a key of a file", user("client-key: /etc/passwd"), errCredential, "users[u]"},
		{"an authority of a file", kubeconfigHead + "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1', certificate-authority: /etc/passwd}}]\nusers: [{name: u, user: {token: t}}]\n",
			errCredential, `clusters[c].certificate-authority: "/etc/passwd"`},
		{"a program of an unused user", kubeconfigHead + plain + "users: [{name: u, user: {token: t}}, {name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}}}]\n",
			errCredential, "users[other]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config, err := restConfig([]byte(c.kubeconfig))
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if c.want == nil && (config == nil || config.Host != "https://127.0.0.1:1") {
				t.Errorf("config %+v", config)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q, want one with %q", err, c.says)
			}
		})
	}
}
