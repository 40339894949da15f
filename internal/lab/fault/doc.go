// Package fault injects faults into a running lab and undoes them, for users who want to
// observe the hub and for tests.
//
// Every fault can be undone, also by another process and after a restart of any program.
// What the undo needs is saved in the directory of the lab before the fault is injected. The
// record is deleted after the undo has succeeded. Undo restores the earlier state, owners of
// fields included. It keeps changes that another client, usually the hub, has made since.
//
// Inputs are a lab, its provider and a [Request]. Outputs are [Fault] records, and
// background processes of the lab for faults that last. It changes nothing outside the lab.
package fault
