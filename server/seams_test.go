package server

import "a2agate/tools"

// What package tools offers is what the edge needs.
var (
	_ Caller           = (*tools.Service)(nil)
	_ Catalogues       = (*tools.Service)(nil)
	_ ResourceVersions = (*tools.Service)(nil)
	_ Prompts          = (*tools.Service)(nil)
	_ Resources        = (*tools.Service)(nil)
	_ Completions      = (*tools.Service)(nil)
)
