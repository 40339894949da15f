package main

import "context"

func (f *fleet) measureHung(ctx context.Context) error { return nil }
