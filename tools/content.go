package tools

import (
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"
)

func textBlock(s string) mcp.Content { return mcp.TextContent{Type: "text", Text: s} }

func textBlocks(texts ...string) []mcp.Content {
	out := make([]mcp.Content, len(texts))
	for i, s := range texts {
		out[i] = textBlock(s)
	}
	return out
}

// sizeWords says a size for people.
func sizeWords(n int) string {
	switch {
	case n < 10_000:
		return strconv.Itoa(n) + " bytes"
	case n < 10_000_000:
		return strconv.Itoa(n/1000) + " kB"
	}
	return strconv.Itoa(n/1_000_000) + " MB"
}
