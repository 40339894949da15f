package outcome

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const maxMessage = 400

var (
	// Sockets and generated suffixes differ from one failure to the next of the
	// same kind; left in, they would turn one failure into a stream of writes.
	socket = regexp.MustCompile(`(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:]+\]):\d+`)
	stamp  = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z?`)
)

// stable is an error's text without what changes from one try to the next.
func stable(err error) string {
	if err == nil {
		return ""
	}
	text := stamp.ReplaceAllString(socket.ReplaceAllString(err.Error(), "(address)"), "(time)")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxMessage {
		// Cut between characters: JSON would turn half a one into another, and the
		// saved status would never equal the next one.
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return text
}

// withoutAddress is what went wrong with a request, without its method and URL.
func withoutAddress(err error) error {
	var link *url.Error
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

func isTLS(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		invalid      x509.CertificateInvalidError
		hostname     x509.HostnameError
		alert        tls.AlertError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &invalid) ||
		errors.As(err, &hostname) || errors.As(err, &alert) || errors.As(err, &record)
}

// replaced says whether a 422 is about an object that was deleted and made anew
// since it was read: the API server takes the other UID for a changed one.
func replaced(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
}

// immutable says whether a 422 is about a field that can't change in place. The
// API server marks it in words only.
func immutable(s metav1.Status) bool {
	if s.Details == nil {
		return false
	}
	for _, c := range s.Details.Causes {
		if strings.Contains(c.Message, "field is immutable") || strings.Contains(c.Message, "updates to statefulset spec for fields other than") ||
			strings.Contains(c.Message, "may not change once set") {
			return true
		}
	}
	return false
}

// ownedByAnother says whether a 409 is about fields of another field manager, as a
// server-side apply without force meets them.
func ownedByAnother(s metav1.Status) bool {
	return s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeFieldManagerConflict
	})
}
