package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// The longest tool names: clients put a prefix of their own in front and some
// cut at 60 characters.
const (
	AgentNameLen = 40
	SkillNameLen = 50
)

// ToolNameFromAlias is the tool name of an agent: the alias itself when it is
// a name that every client takes (a lower-case letter, then lower-case letters,
// digits, "_" and "-", at most AgentNameLen), else one made of it with a hash of
// the alias. It depends on the alias alone, so it is the same after a restart,
// in any order, beside any other agent.
func ToolNameFromAlias(alias string) string {
	if validName(alias, AgentNameLen) {
		return alias
	}
	return hashedName(stem(alias, "agent"), alias, AgentNameLen)
}

// ToolNameFromSkill is the tool name of a skill: prefix and skill id verbatim
// when together they are a name that every client takes, else one made of them
// with a hash of key and skill id. prefix is "<alias>_" or the configured tool
// prefix, which may be empty; key is the agent's key in the configuration.
func ToolNameFromSkill(prefix, skillID, key string) string {
	name := prefix + skillID
	if validName(name, SkillNameLen) && skillID != "" {
		return name
	}
	return hashedSkill(prefix, skillID, key)
}

func hashedSkill(prefix, skillID, key string) string {
	const room = SkillNameLen - hashLen - 1
	s := stem(skillID, "skill")
	head := ""
	if prefix != "" {
		head = stem(prefix, "agent")
		// Both halves stay recognisable.
		if over := len(head) + 1 + len(s) - room; over > 0 {
			head = strings.Trim(head[:max(len(head)-over, min(len(head), room/2))], "_-")
		}
		head += "_"
	}
	return hashedName(head+s, key+"\x00"+skillID, SkillNameLen)
}

// hashLen is the length of the hash in a name, in hexadecimal digits.
const hashLen = 6

func hashedName(stem, key string, limit int) string {
	return suffixed(stem, key, limit, hashLen)
}

func suffixed(stem, key string, limit, digits int) string {
	sum := sha256.Sum256([]byte(key))
	stem = strings.TrimRight(stem[:min(len(stem), limit-digits-1)], "_-")
	return stem + "_" + hex.EncodeToString(sum[:])[:digits]
}

func validName(s string, limit int) bool {
	if s == "" || len(s) > limit || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := 1; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// stem makes the readable part of a name: lower case, camel humps and anything
// else become one "_". fallback stands in where nothing is left.
func stem(s, fallback string) string {
	var b strings.Builder
	gap, lower := false, false
	for _, r := range s {
		upper := r >= 'A' && r <= 'Z'
		switch {
		case upper:
			gap = gap || lower
			r += 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
		default:
			gap, lower = true, false
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap, lower = false, !upper
		b.WriteRune(r)
	}
	name := b.String()
	switch {
	case name == "":
		return fallback
	case isDigit(name[0]):
		return fallback + "_" + name
	}
	return name
}

// Key names one thing that wants a tool name: an agent, or a skill of one.
type Key struct {
	// Agent is the alias, the key of the configuration.
	Agent string
	// Skill is the skill id; "" is the agent itself.
	Skill string
}

// NamesFromKeys gives each key its tool name, with no two alike, not even by
// case. prefix is what stands before a skill id, given the alias; nil means
// "<alias>_". reserved names are never given out.
//
// A name depends on its key alone, except where two keys want the same: an
// agent keeps its name before a skill, since an alias is the user's own choice
// and a skill id a stranger's; skills that want one name all get a hash, so
// that a name never comes to mean another skill.
func NamesFromKeys(keys []Key, prefix func(alias string) string, reserved ...string) map[Key]string {
	if prefix == nil {
		prefix = func(alias string) string { return alias + "_" }
	}
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b Key) int {
		if c := strings.Compare(a.Agent, b.Agent); c != 0 {
			return c
		}
		return strings.Compare(a.Skill, b.Skill)
	})
	keys = slices.Compact(keys)
	taken := make(map[string]bool, len(keys)+len(reserved))
	for _, r := range reserved {
		taken[strings.ToLower(r)] = true
	}
	names := make(map[Key]string, len(keys))
	for _, k := range keys {
		if k.Skill == "" {
			names[k] = free(taken, ToolNameFromAlias(k.Agent), stem(k.Agent, "agent"), k.Agent, AgentNameLen)
		}
	}
	wanted := map[string]int{}
	for _, k := range keys {
		if k.Skill != "" {
			wanted[ToolNameFromSkill(prefix(k.Agent), k.Skill, k.Agent)]++
		}
	}
	for _, k := range keys {
		if k.Skill == "" {
			continue
		}
		p := prefix(k.Agent)
		name := ToolNameFromSkill(p, k.Skill, k.Agent)
		if wanted[name] > 1 {
			name = hashedSkill(p, k.Skill, k.Agent)
		}
		names[k] = free(taken, name, stem(p+k.Skill, "skill"), k.Agent+"\x00"+k.Skill, SkillNameLen)
	}
	return names
}

// free takes name, or a hashed one with more and more digits where it is taken.
func free(taken map[string]bool, name, stem, key string, limit int) string {
	for digits := hashLen; taken[name] && digits <= 32; digits++ {
		name = suffixed(stem, key, limit, digits)
	}
	taken[name] = true
	return name
}
