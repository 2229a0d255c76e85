package config

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParse50(b *testing.B) {
	var agents []string
	for i := range 50 {
		agents = append(agents, fmt.Sprintf(`"agent%d": {"url": "https://agents.example.com/%d", "auth": {"type": "bearer", "token": "${env:TOKEN}"}}`, i, i))
	}
	text := `{"agents": {` + strings.Join(agents, ",\n") + `}}`
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseTest("f.json", text); err != nil {
			b.Fatal(err)
		}
	}
}
