package inventory

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reconcile-lab/reconcile-lab/api/v1alpha1"
)

// lifetime is the lifetime of a credential. The zero value has no known end.
type lifetime struct {
	from, until time.Time
	// kind is "token" or "client certificate".
	kind string
}

// expiryWarning is how long before its end a credential counts as expiring. A credential
// with a shorter lifetime than three times that does so in its last third.
const expiryWarning = 30 * 24 * time.Hour

// lifetimeOf returns the lifetime of a credential: that of its client certificate or of
// its token, whichever ends first.
func lifetimeOf(kubeconfig []byte) lifetime {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return lifetime{}
	}
	certificate, token := certificateLifetime(config.CertData), tokenLifetime(config.BearerToken)
	if certificate.until.IsZero() || !token.until.IsZero() && token.until.Before(certificate.until) {
		return token
	}
	return certificate
}

func certificateLifetime(chain []byte) lifetime {
	block, _ := pem.Decode(chain)
	if block == nil {
		return lifetime{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return lifetime{}
	}
	return lifetime{from: certificate.NotBefore, until: certificate.NotAfter, kind: "client certificate"}
}

// tokenLifetime returns the lifetime of a JSON Web Token. The member verifies the token;
// a forged end here has no other effect than a wrong condition.
func tokenLifetime(token string) lifetime {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return lifetime{}
	}
	var claims struct {
		Expires json.Number `json:"exp"`
		Issued  json.Number `json:"iat"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return lifetime{}
	}
	until, ok := numericDate(claims.Expires)
	if !ok {
		return lifetime{}
	}
	l := lifetime{until: until, kind: "token"}
	l.from, _ = numericDate(claims.Issued)
	return l
}

// numericDate converts seconds since 1970, possibly with a fraction (RFC 7519, section 2).
func numericDate(n json.Number) (time.Time, bool) {
	seconds, err := n.Float64()
	// RFC 3339 ends with the year 9999.
	if err != nil || seconds <= 0 || seconds > 253402300799 {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0).UTC(), true
}

// warnAt returns the time from which the credential counts as expiring.
func (l lifetime) warnAt() time.Time {
	before := expiryWarning
	if life := l.until.Sub(l.from); !l.from.IsZero() && life > 0 {
		before = min(before, life/3)
	}
	return l.until.Add(-before)
}

// condition returns the condition CredentialExpiring, or nil without a known end. Its
// message changes at most once a day.
func (l lifetime) condition(member string, now time.Time) *metav1.Condition {
	if l.until.IsZero() {
		return nil
	}
	c := &metav1.Condition{Type: v1alpha1.ConditionCredentialExpiring, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonCredentialValid}
	end := l.until.UTC().Format("2006-01-02 15:04 UTC")
	remedy := fmt.Sprintf("renew it with: reconcile-lab join %s --kubeconfig FILE", member)
	switch left := l.until.Sub(now); {
	case left <= 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonCredentialExpired
		c.Message = fmt.Sprintf("the hub's %s for the member expired at %s; %s", l.kind, end, remedy)
	case !now.Before(l.warnAt()):
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonCredentialExpiresSoon
		c.Message = fmt.Sprintf("the hub's %s for the member expires at %s, %s; %s", l.kind, end, daysLeft(left), remedy)
	default:
		c.Message = fmt.Sprintf("the hub's %s for the member expires at %s, %s", l.kind, end, daysLeft(left))
	}
	return c
}

func daysLeft(left time.Duration) string {
	switch days := int(left / (24 * time.Hour)); days {
	case 0:
		return "in less than a day"
	case 1:
		return "in 1 day"
	default:
		return fmt.Sprintf("in %d days", days)
	}
}
