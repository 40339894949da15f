package inventory

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(claims)) + ".c2ln"
}

func withToken(token string) []byte {
	return fmt.Appendf(nil, "%sclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {token: '%s'}}]\n", kubeconfigHead, token)
}

func withCertificate(t *testing.T, from, until time.Time, token string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	data := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return fmt.Appendf(nil, "%sclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {client-certificate-data: %s, client-key-data: %s, token: '%s'}}]\n",
		kubeconfigHead, data("CERTIFICATE", der), data("EC PRIVATE KEY", private), token)
}

func TestLifetimeCondition_ReportsTheEndOfACredential(t *testing.T) {
	claims := func(issued, expires time.Time) string {
		return jwt(fmt.Sprintf(`{"iat":%d,"exp":%d}`, issued.Unix(), expires.Unix()))
	}
	year := noon.Add(-335 * day)
	for _, c := range []struct {
		name, why  string
		kubeconfig []byte
		status     metav1.ConditionStatus
		reason     string
		says       string
	}{
		{"a token of a Secret", "it does not expire", withToken(jwt(`{"sub":"x"}`)), "", "", ""},
		{"an opaque token", "its end is unknown", withToken("abc.def"), "", "", ""},
		{"a token of three parts that is not a JWT", "its end is unknown", withToken("a.b.c"), "", "", ""},
		{"an end that is no number", "its end is unknown", withToken(jwt(`{"exp":"tomorrow"}`)), "", "", ""},
		{"an end after the year 9999", "it cannot be formatted", withToken(jwt(`{"exp":1e300}`)), "", "", ""},
		{"no credential", "there is nothing that expires", nil, "", "", ""},
		{"a token of a year, 31 days before its end", "the warning begins at 30 days", withToken(claims(year, noon.Add(31*day))), metav1.ConditionFalse, v1alpha1.ReasonCredentialValid, "token for the member expires at 2026-12-31 12:00 UTC, in 31 days"},
		{"a token of a year, 30 days before its end", "the warning begins at 30 days", withToken(claims(year, noon.Add(30*day))), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon, "in 30 days; renew it with: reconcile-lab join eu-1 --kubeconfig FILE"},
		{"a token of a year, on its last day", "one day is left", withToken(claims(year, noon.Add(day+time.Hour))), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon, "in 1 day;"},
		{"a token of three hours, in its second", "two thirds are not over", withToken(claims(noon.Add(-time.Hour), noon.Add(2*time.Hour))), metav1.ConditionFalse, v1alpha1.ReasonCredentialValid, "in less than a day"},
		{"a token of three hours, in its third", "two thirds are over", withToken(claims(noon.Add(-2*time.Hour), noon.Add(time.Hour))), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon, "in less than a day"},
		{"a token without a begin", "the warning begins at 30 days", withToken(jwt(fmt.Sprintf(`{"exp":%d.5}`, noon.Add(29*day).Unix()))), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon, "in 29 days"},
		{"an expired token", "its end has passed", withToken(claims(year, noon)), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpired, "expired at 2026-11-30 12:00 UTC; renew it"},
		{"a certificate", "its end is used", withCertificate(t, year, noon.Add(10*day), ""), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon, "client certificate for the member expires at 2026-12-10 12:00 UTC, in 10 days"},
		{"a certificate and a token that ends sooner", "the first end is used", withCertificate(t, year, noon.Add(90*day), claims(year, noon.Add(5*day))), metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon, "token"},
		{"a certificate and a token that ends later", "the first end is used", withCertificate(t, year, noon.Add(90*day), claims(year, noon.Add(95*day))), metav1.ConditionFalse, v1alpha1.ReasonCredentialValid, "client certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := lifetimeOf(c.kubeconfig).condition("eu-1", noon)
			if got == nil {
				got = &metav1.Condition{}
			}
			if got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.says) {
				t.Errorf("%+v; want %s %s %q: %s", *got, c.status, c.reason, c.says, c.why)
			}
		})
	}
}

func TestLifetimeCondition_ChangesItsMessageOnceADay(t *testing.T) {
	l := lifetime{from: noon, until: noon.Add(90 * day), kind: "token"}
	distinct := map[string]bool{}
	const days = 95
	for at := noon; at.Before(noon.Add(days * day)); at = at.Add(time.Hour) {
		distinct[l.condition("a", at).Message] = true
	}
	if len(distinct) > days+1 {
		t.Errorf("%d messages in %d days", len(distinct), days)
	}
}

func TestMember_PublishesTheEndOfTheCredentialUntilItIsReplaced(t *testing.T) {
	r, server := newRig(t), startServer(t)
	short := jwt(fmt.Sprintf(`{"exp":%d}`, time.Now().Add(5*day).Unix()))
	server.accept(short, true)
	m, leave := r.join("ends", server.kubeconfig(short))
	eventually(t, "the profile has the end", func() bool {
		c := meta.FindStatusCondition(r.profile("ends").Status.Conditions, v1alpha1.ConditionCredentialExpiring)
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == v1alpha1.ReasonCredentialExpiresSoon
	})
	if got := valueOf(t, credentialExpiry.WithLabelValues("ends")); got < float64(time.Now().Add(4*day).Unix()) {
		t.Errorf("the metric is %f", got)
	}
	m.setCredential(server.kubeconfig("good"))
	eventually(t, "the profile has no end", func() bool {
		return meta.FindStatusCondition(r.profile("ends").Status.Conditions, v1alpha1.ConditionCredentialExpiring) == nil
	})
	r.waitForReachable("ends", metav1.ConditionTrue, v1alpha1.ReasonReachable, answersMessage)
	leave()
	if n := seriesOf("ends"); n > 0 {
		t.Errorf("%d series remain of a member that left", n)
	}
}
