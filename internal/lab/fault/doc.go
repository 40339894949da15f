// Package fault breaks a running lab on purpose, for people who want to see what
// the hub does about it and for tests, and puts it right again.
//
// It promises that every fault can be undone, also by another process and after a
// restart of anything: what is needed to undo it is recorded in the lab's folder
// before the fault is there, and the fault stays recorded until its undo succeeded.
// Undo restores what was there, owners of fields included, and leaves alone what
// somebody else, most often the hub, has put right meanwhile.
//
// Input: a lab with its provider, and a [Request]. Output: [Fault] records, and
// background processes of the lab for what must go on acting. It touches nothing
// outside the lab.
package fault
