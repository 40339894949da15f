// Command nodeimage pulls or builds the image of kind nodes and prints its name.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/reconcile-lab/reconcile-lab/internal/lab/nodeimage"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	image, err := nodeimage.Ensure(ctx, func(step string) { fmt.Fprintln(os.Stderr, step) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	fmt.Println(image.Ref)
}
