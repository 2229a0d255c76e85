package tools

import (
	"fmt"
	"strings"

	"a2agate/translate"
)

// instructions are the server's word to the model: what stands behind the
// tools and which agents there are, within the 2 KB that clients keep.
func (st *state) instructions(agents []*agent) string {
	var b strings.Builder
	b.WriteString("This server reaches A2A agents (Agent2Agent protocol 1.0 and 0.3). " +
		"Use a2a_discover to see what they can do, a2a_send_message to talk to one, a2a_get_task to collect work that takes longer, and a2a_cancel_task to stop it. " +
		"Results name handles: pass contextHandle to go on with a conversation, taskHandle to answer an agent that asks something. ")
	if len(agents) == 0 {
		b.WriteString("No agent is configured yet.")
		return b.String()
	}
	b.WriteString("Agents: ")
	const room = translate.DescriptionBytes - len("; and 10000 more, see a2a_discover.")
	for i, a := range agents {
		sep := "; "
		if i == 0 {
			sep = ""
		}
		short := sep + a.Alias
		long := short
		if name := a.info.name; name != "" && name != a.Alias {
			long += " (" + plainDashes(translate.CutRunes(name, 60)) + ")"
		}
		// The aliases that follow must still fit; their names need not.
		rest := 0
		for _, later := range agents[i+1:] {
			rest += len(later.Alias) + 2
		}
		switch {
		case b.Len()+len(long)+rest <= room:
			b.WriteString(long)
		case b.Len()+len(short) <= room:
			b.WriteString(short)
		default:
			fmt.Fprintf(&b, "; and %d more, see a2a_discover", len(agents)-i)
			b.WriteByte('.')
			return b.String()
		}
	}
	b.WriteByte('.')
	return b.String()
}

// plainDashes writes long dashes as hyphens: some clients' fonts and filters
// stumble over them in instructions.
func plainDashes(s string) string {
	return strings.NewReplacer("\u2013", "-", "\u2014", "-").Replace(s)
}
