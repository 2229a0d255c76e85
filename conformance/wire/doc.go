// Package wire holds black-box tests: the built gateway in front of two agents,
// spoken to by bare HTTP on every revision, each message that it writes held
// against the published JSON Schema of that revision.
package wire
