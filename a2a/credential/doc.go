// Package credential applies an agent's configured credentials to requests.
//
// Credentials belong to the configured origin: nothing here ever decides
// where a request goes, and package a2a asks for a credential only for a
// request to that origin. Secrets are held in a type that cannot print
// itself.
package credential
