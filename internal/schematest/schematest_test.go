package schematest

import "testing"

func TestDefinitionsExist(t *testing.T) {
	Need(t)
	for _, rev := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, def := range []string{"ListToolsResult", "CallToolResult", "JSONRPCNotification", errorDefinition(rev)} {
			if _, err := schema(rev, def); err != nil {
				t.Errorf("%s %s: %v", rev, def, err)
			}
		}
	}
	for _, def := range []string{"CreateTaskResult", "GetTaskResult", "TaskStatusNotification"} {
		if _, err := schema(Tasks, def); err != nil {
			t.Errorf("%s: %v", def, err)
		}
	}
}

func TestRefusesWrongMessages(t *testing.T) {
	Need(t)
	for _, tt := range []struct{ rev, def, raw string }{
		{"2026-07-28", "ListToolsResult", `{"tools":[]}`},
		{"2025-11-25", "ListToolsResult", `{"tools":[{"name":"x"}]}`},
		{"2025-03-26", "JSONRPCError", `{"jsonrpc":"2.0","id":1}`},
		{Tasks, "CreateTaskResult", `{"resultType":"task"}`},
	} {
		if check(tt.rev, tt.def, []byte(tt.raw)) == nil {
			t.Errorf("%s %s accepts %s", tt.rev, tt.def, tt.raw)
		}
	}
}
