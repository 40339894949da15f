// Package failure classifies each error of a request to a member. A Failure has one of five
// classes, a reason, a message for users and a hint with the fix.
//
// The package is pure: it reads no clock and sends no request. The controller turns a class
// into a retry:
//
//   - Invalid: after the next generation of the object.
//   - Blocked: after someone removed the obstacle that the message names.
//   - Unreachable: after a successful probe of the member.
//   - Conflict and Transient: with exponential backoff.
//
// The same cause has the same message, byte by byte: messages contain no times, socket
// addresses or generated names. Otherwise each retry would write a status to the hub.
package failure
