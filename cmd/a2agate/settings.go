package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"a2agate/config"
)

// fileFlags are the flags of the commands that read a configuration.
type fileFlags struct {
	config   string
	listen   string
	insecure bool
}

// load reads the configuration that the arguments and flags name: URLs on the
// command line, else --config, else the first of the usual files. Flags win
// over the file.
func (f fileFlags) load(p process, args []string) (*config.Config, error) {
	cfg, err := f.read(p, args)
	if err != nil {
		return nil, err
	}
	if f.listen != "" {
		if _, _, err := net.SplitHostPort(f.listen); err != nil {
			return nil, usageError{fmt.Errorf("--listen %q is not host:port; for example 127.0.0.1:8931, or 127.0.0.1:0 for a free port", f.listen)}
		}
		cfg.Listen = f.listen
	}
	if err := debugFromEnv(cfg, p.getenv); err != nil {
		return nil, err
	}
	return cfg, f.placed(f.exposed(cfg.Listen, cfg), cfg)
}

func (f fileFlags) read(p process, args []string) (*config.Config, error) {
	if len(args) > 0 {
		if f.config != "" {
			return nil, usageError{errors.New("URLs and --config do not go together; put the URLs into the file, or leave --config out")}
		}
		if name := fileAmong(args); name != "" {
			return nil, usageError{fmt.Errorf("%q is not an agent's URL; a configuration file is named with --config", name)}
		}
		return config.FromURLs(args)
	}
	path, data, err := f.file(p)
	if err != nil {
		return nil, err
	}
	return config.Parse(path, data, p.getenv, os.ReadFile)
}

// fileAmong is what of the arguments is meant for a file, "" for none.
func fileAmong(args []string) string {
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			continue
		}
		if info, err := os.Stat(arg); strings.HasSuffix(arg, ".json") || strings.HasSuffix(arg, ".jsonc") || err == nil && !info.IsDir() {
			return arg
		}
	}
	return ""
}

// errNoFile is that neither a file is named nor one of the usual ones is there.
var errNoFile = errors.New("no agents")

// file reads the text of the file that is named, else the first of the usual
// ones.
func (f fileFlags) file(p process) (path string, data []byte, err error) {
	path = f.config
	if path == "" {
		dir, err := p.getwd()
		if err != nil {
			return "", nil, err
		}
		var found bool
		if path, found = config.Find(dir); !found {
			return "", nil, usageError{fmt.Errorf("%w: name an agent's URL, or a file with --config, or put an agents.json into %s", errNoFile, dir)}
		}
	}
	data, err = os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, fmt.Errorf("the file %q does not exist; name another with --config", path)
	case errors.Is(err, fs.ErrPermission):
		return "", nil, fmt.Errorf("the file %q may not be read by this user; change its permissions", path)
	case err != nil:
		return "", nil, fmt.Errorf("the file %q cannot be read: %w", path, plainFileError(err))
	}
	return path, data, nil
}

// exposed refuses a listener that others can reach while nobody has to say
// who they are.
func (f fileFlags) exposed(listen string, cfg *config.Config) error {
	if f.insecure || cfg.Auth.Enabled() || loopback(listen) {
		return nil
	}
	return exposedError(listen)
}

// exposedError is the address of a listener that lets everybody in.
type exposedError string

func (e exposedError) Error() string { return "listen " + e.words() }

func (e exposedError) words() string {
	return fmt.Sprintf("%q can be reached from other machines and no auth is configured; "+
		"add auth.tokens or auth.oauth to the file, listen on 127.0.0.1, or say --insecure", string(e))
}

// placed says where in the file the address stands that lets everybody in.
func (f fileFlags) placed(err error, cfg *config.Config) error {
	var open exposedError
	if !errors.As(err, &open) || f.listen != "" || cfg.Path == "" {
		return err
	}
	data, failed := os.ReadFile(cfg.Path)
	if failed != nil { // it could be read a moment ago
		return err
	}
	at, found := config.Locate(cfg.Path, data, open.words(), "listen")
	if !found {
		at, _ = config.Locate(cfg.Path, data, open.words(), "host")
	}
	return &config.Error{Problems: []config.Problem{at}, Files: cfg.Files}
}

// itself refuses an agent that is the gateway: at the address where it is going
// to listen there can be no other program.
func itself(cfg *config.Config, a config.Agent) error {
	u, err := url.Parse(a.URL + a.CardURL) // one of them is empty
	if err != nil {
		return nil //nolint:nilerr // a checked configuration has none
	}
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port == "0" || port != u.Port() || !sameHost(host, u.Hostname()) {
		return nil //nolint:nilerr // told of when it is listened on
	}
	return fmt.Errorf("%s is where this gateway listens, not an agent; name an agent's own address, or listen elsewhere with --listen", addressOf(a))
}

// sameHost reports whether a listener on one host takes what is sent to
// another.
func sameHost(listen, host string) bool {
	if strings.EqualFold(listen, "localhost") {
		listen = "127.0.0.1"
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1"
	}
	at, to := net.ParseIP(listen), net.ParseIP(host)
	if at == nil || to == nil {
		return listen != "" && strings.EqualFold(listen, host)
	}
	return at.Equal(to) || at.IsUnspecified() && to.IsLoopback()
}

// loopback reports whether an address is reachable from this machine only.
func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// noArgs is cobra.NoArgs with the remedy in the message.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q; see '%s --help'", c.Name(), args[0], c.CommandPath())}
	}
	return nil
}
