package a2a

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// addressClass sorts IP addresses by what may be dialled.
type addressClass string

const (
	addressPublic      addressClass = "public"
	addressLoopback    addressClass = "loopback"
	addressPrivate     addressClass = "private"
	addressLinkLocal   addressClass = "link-local"
	addressMetadata    addressClass = "metadata service"
	addressUnspecified addressClass = "unspecified"
	addressReserved    addressClass = "reserved"
)

// metadataAddresses are where clouds serve credentials to whoever asks.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // nearly all
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// The special-purpose blocks that net/netip has no method for (RFC 6890).
var (
	privatePrefixes = []netip.Prefix{
		netip.MustParsePrefix("100.64.0.0/10"), // shared address space
		netip.MustParsePrefix("198.18.0.0/15"), // benchmarking
		netip.MustParsePrefix("fec0::/10"),     // site-local, deprecated
	}
	reservedPrefixes = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("192.0.0.0/24"),
		netip.MustParsePrefix("240.0.0.0/4"), // with 255.255.255.255
	}
	// The address of the IPv4 host is in the last four bytes (RFC 6052, and
	// RFC 2765 for translated ones) …
	nat64Prefix      = netip.MustParsePrefix("64:ff9b::/96")
	translatedPrefix = netip.MustParsePrefix("::ffff:0:0:0/96")
	// … or in bytes 2 to 5 (RFC 3056) …
	sixToFourPrefix = netip.MustParsePrefix("2002::/16")
	// … or inverted in the last four (RFC 4380), behind a relay in bytes 4 to 7.
	teredoPrefix = netip.MustParsePrefix("2001::/32")
	// Local translators choose where in their block it is (RFC 8215, 6052 2.2).
	localNAT64Prefix = netip.MustParsePrefix("64:ff9b:1::/48")
)

// embedded are the IPv4 addresses that an IPv6 address may reach: none for
// most, several where the place is the translator's choice.
func embedded(ip netip.Addr) []netip.Addr {
	b := ip.As16()
	four := func(at ...int) netip.Addr {
		return netip.AddrFrom4([4]byte{b[at[0]], b[at[1]], b[at[2]], b[at[3]]})
	}
	last := four(12, 13, 14, 15)
	switch {
	case nat64Prefix.Contains(ip), translatedPrefix.Contains(ip):
		return []netip.Addr{last}
	case sixToFourPrefix.Contains(ip):
		return []netip.Addr{four(2, 3, 4, 5)}
	case teredoPrefix.Contains(ip):
		inverted := last.As4()
		for i := range inverted {
			inverted[i] = ^inverted[i]
		}
		return []netip.Addr{netip.AddrFrom4(inverted), four(4, 5, 6, 7)}
	case localNAT64Prefix.Contains(ip):
		places := []netip.Addr{last, four(6, 7, 9, 10), four(7, 9, 10, 11), four(9, 10, 11, 12)}
		return slices.DeleteFunc(places, func(a netip.Addr) bool { return a.As4()[0] == 0 }) // padding there
	case b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe:
		return []netip.Addr{last} // ISATAP (RFC 5214)
	case [12]byte(b[:12]) == [12]byte{} && !ip.IsLoopback() && !ip.IsUnspecified():
		return []netip.Addr{last} // IPv4-compatible, deprecated
	}
	return nil
}

// classify sorts an address. One that reaches others by translation is of the
// most dangerous class among them.
func classify(ip netip.Addr) addressClass {
	ip = ip.Unmap().WithZone("")
	class := classifyPlain(ip)
	if !ip.Is6() {
		return class
	}
	for _, inner := range embedded(ip) {
		if c := classifyPlain(inner); slices.Index(byDanger, c) > slices.Index(byDanger, class) {
			class = c
		}
	}
	return class
}

// byDanger orders the classes by what a wrong connection could do there.
var byDanger = []addressClass{
	addressPublic, addressReserved, addressPrivate, addressUnspecified, addressLoopback, addressLinkLocal, addressMetadata,
}

func classifyPlain(ip netip.Addr) addressClass {
	contains := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case slices.Contains(metadataAddresses, ip):
		return addressMetadata
	case ip.IsUnspecified():
		return addressUnspecified
	case ip.IsLoopback():
		return addressLoopback
	case ip.IsLinkLocalUnicast():
		return addressLinkLocal
	case ip.IsMulticast(), slices.ContainsFunc(reservedPrefixes, contains):
		return addressReserved
	case ip.IsPrivate(), slices.ContainsFunc(privatePrefixes, contains):
		return addressPrivate
	}
	return addressPublic
}

// addressPolicy says which addresses may be dialled for an agent. It judges
// the address that is really dialled, after resolving, so that a name cannot
// change its mind between a check and the connection.
type addressPolicy struct {
	// configured is the canonical host of the agent's address.
	configured string
	allow      allowHosts
	// hostsFile maps names on this machine; what it says of a name is the
	// operator's word, not that of a name server.
	hostsFile string
	// proxy is the host:port of the configured proxy, which is dialled freely;
	// "" for none.
	proxy string
}

// BlockedAddressError is a connection that the address policy refused.
type BlockedAddressError struct {
	// Host is the name or address that was to be reached.
	Host string
	// Addr is what it resolved to.
	Addr netip.Addr

	class  addressClass
	remedy string
}

// Error says what was refused and what to do.
func (e *BlockedAddressError) Error() string { return e.Blocked() }

// Blocked says what was refused and what to do, fit for a caller.
func (e *BlockedAddressError) Blocked() string {
	what := fmt.Sprintf("%s is a %s address", e.Host, e.class)
	if canonicalHost(e.Host) != e.Addr.String() {
		what = fmt.Sprintf("%s resolves to %s, a %s address", plainLine(e.Host, 100), e.Addr, e.class)
	}
	return what + ", which is not called" + e.remedy
}

// check refuses the address that host, as named in a URL, is dialled at.
func (p addressPolicy) check(host, port string, ip netip.Addr) error {
	name := canonicalHost(host)
	class := classify(ip)
	listed := p.allow.lists(name, port)
	trusted := listed || name == p.configured
	_, literal := addressOf(name)
	refuse := func(remedy string) error {
		return &BlockedAddressError{Host: host, Addr: ip.Unmap(), class: class, remedy: remedy}
	}
	switch class {
	case addressPublic:
		return nil
	case addressPrivate:
		if trusted {
			return nil
		}
		return refuse(fmt.Sprintf(": list %q in allowHosts if it is meant", name))
	case addressLoopback:
		if listed || p.loopbackMeant(name) || name == p.configured && inHostsFile(p.hostsFile, name, ip) {
			return nil
		}
		return refuse(fmt.Sprintf(": list %q in allowHosts if it is meant", name))
	}
	if trusted && literal {
		return nil
	}
	return refuse(" unless it is configured as an address")
}

// loopbackMeant reports whether name is a plain name of this machine and the
// agent is configured on this machine.
func (p addressPolicy) loopbackMeant(name string) bool {
	if !isLoopbackHost(name) && !isUnspecifiedHost(name) {
		return false
	}
	return isLoopbackHost(p.configured) || isUnspecifiedHost(p.configured)
}

// inHostsFile reports whether the hosts file maps name to ip. It is read when
// a name turns out to be this machine, which is rare.
func inHostsFile(file, name string, ip netip.Addr) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		mapped, err := netip.ParseAddr(fields[0])
		if err == nil && mapped.Unmap() == ip.Unmap() && slices.ContainsFunc(fields[1:], func(f string) bool { return canonicalHost(f) == name }) {
			return true
		}
	}
	return false
}
