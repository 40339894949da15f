// Package nodeimage provides the image of kind's nodes: the published one if it can be
// pulled, else one that it builds from Debian packages and Go modules.
//
// After [Ensure], the returned image is in the Docker daemon. With the built image, clusters
// and the pods of CacheClusters start without pulling any image: it contains replacements of
// the published cache images. Each step (root file system, binaries, image) is cached when
// it is complete, so an interrupted build continues with the step that was interrupted.
//
// Inputs are package internal/lab/binaries, the Debian mirror that apt is configured for,
// and the environment variable RECONCILE_LAB_NODE_IMAGE: auto (the default), build, or the
// name of an image. The tag contains a hash of all inputs.
//
// It needs Docker, and root to build the root file system. It changes its cache directory
// and the images of the Docker daemon only, and installs the package debootstrap.
package nodeimage
