// Package controller runs the hub's stages for one CacheCluster: Read, Place,
// Plan, Apply, Summarize, Write. It talks to the hub's API server only; what
// happens in a member is the spoke's business and comes back as the status of a
// MemberCache.
package controller
