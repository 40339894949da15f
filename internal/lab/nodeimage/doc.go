// Package nodeimage gives kind an image for its nodes: the published one where it can be
// pulled, else one that it builds out of Debian packages and Go modules.
//
// Promise: the image that [Ensure] names is in the Docker daemon, and clusters start from
// it without pulling anything but, with the published one, what their pods run. The
// built one also holds stand-ins for the images of the caches that labs run. Each step
// is cached (root file system, binaries, the finished image), and appears only when it
// is whole, so an interrupted build goes on where it was.
//
// Inputs: package internal/lab/binaries, Debian's mirror as apt has it configured, and the
// variable RECONCILE_LAB_NODE_IMAGE: auto (the default), build, or the name of an image.
// The tag is a hash of all inputs.
//
// It needs Docker, and root for the root file system. It never changes the machine
// beyond its cache folder and the daemon's images, but for apt's debootstrap package.
package nodeimage
