// Package clientfile edits the configuration files of MCP clients: it adds
// one server to such a file and takes it out again, as pure functions from
// bytes to bytes, and knows for each client which file, which field names and
// which timeouts it has.
//
// An edit changes as little as can be. Comments, blanks, line ends, the order
// of keys and every byte that is not the server's own stay as they are; adding
// twice is adding once; removing after adding gives the old bytes back, also
// where the list that holds the servers was not there before. A file that
// does not parse, or has something else where the servers should be, is left
// alone: the error says where and why.
//
// It reads no file, no environment and no clock.
package clientfile
