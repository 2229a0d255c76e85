package config

// Locate makes a problem of a value in the text of a file, for what can be
// told only outside of this package. name is the file's path as it shall stand
// in the message, keys lead to the value. Where the text has no such value, or
// is no JSON, found is false and the problem has the place of what it would
// stand in, or none.
func Locate(name string, data []byte, message string, keys ...string) (p Problem, found bool) {
	p = Problem{File: name, Message: message}
	for _, key := range keys {
		p.Path = child(p.Path, key)
	}
	s := newSource(name, data)
	n, err := s.parse()
	if err != nil {
		return p, false
	}
	found = true
	for _, key := range keys {
		inner := n.get(key)
		if inner == nil {
			found = false
			break
		}
		n = inner
	}
	p.Line, p.Column = s.place(n.start)
	return p, found
}

// SameAddress returns the groups of agents with one address, each of at least
// two aliases in the order of the file. That may be meant: their credentials
// or headers can differ. Agents that are left out count too.
func (c *Config) SameAddress() [][]string {
	var order []string
	aliases := map[string][]string{}
	for _, a := range c.Agents {
		address := a.URL + a.CardURL // one of them is empty
		if aliases[address] == nil {
			order = append(order, address)
		}
		aliases[address] = append(aliases[address], a.Alias)
	}
	var groups [][]string
	for _, address := range order {
		if len(aliases[address]) > 1 {
			groups = append(groups, aliases[address])
		}
	}
	return groups
}
