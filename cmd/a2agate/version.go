package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"a2agate/translate"
)

func versionCommand(p process) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and what is spoken",
		Example: "  a2agate version",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(p.out, "a2agate %s (%s, %s/%s%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH, revision())
			fmt.Fprintf(p.out, "MCP %s, %s, %s, %s\nA2A 1.0, 0.3 over JSONRPC and HTTP+JSON\n",
				translate.Rev20260728, translate.Rev20251125, translate.Rev20250618, translate.Rev20250326)
			return nil
		},
	}
}

// revision is the commit that the binary was built from, where Go knows it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return ", " + s.Value[:12]
		}
	}
	return ""
}
