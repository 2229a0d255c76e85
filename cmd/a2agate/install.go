package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"a2agate/internal/clientfile"
)

// installFlags are what install can be told.
type installFlags struct {
	url      string
	name     string
	tokenEnv string
	scope    string
	print    bool
	remove   bool
}

func installCommand(p process) *cobra.Command {
	var flags installFlags
	var ids []string
	for _, c := range clientfile.Clients() {
		ids = append(ids, c.ID)
	}
	c := &cobra.Command{
		Use:   "install {" + strings.Join(ids, " | ") + "}",
		Short: "Put the gateway into the configuration of an MCP client",
		Long: `Puts the gateway into the configuration file of an MCP client, in the words of
that client and with its timeouts raised. The rest of the file stays as it is,
byte for byte; the file as it was before is kept beside it. A file that cannot
be read is left alone, and the block to paste is printed.

A protected gateway needs a token: --token-env names the environment variable
that the client reads it from. The token itself is never written.`,
		Example: `  a2agate install claude
  a2agate install cursor --scope project
  a2agate install vscode --url https://gw.example.com/mcp --token-env A2AGATE_TOKEN
  a2agate install codex --print
  a2agate install claude --remove`,
		ValidArgs: ids,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("install takes one client: %s; see '%s --help'", strings.Join(ids, ", "), c.CommandPath())}
			}
			if _, ok := clientfile.Lookup(args[0]); !ok {
				return usageError{fmt.Errorf("client %q is not known; one of %s", args[0], strings.Join(ids, ", "))}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if flags.print && flags.remove {
				return usageError{errors.New("--print and --remove do not go together; leave one of them out")}
			}
			return install(p, args[0], flags)
		},
	}
	c.Flags().StringVarP(&flags.url, "url", "u", "http://127.0.0.1:8931/mcp", "where the client reaches the gateway")
	c.Flags().StringVar(&flags.name, "name", "a2a", "name of the server in the client; short, as it begins the tools' names")
	c.Flags().StringVar(&flags.tokenEnv, "token-env", "", "environment variable that holds the token")
	c.Flags().StringVar(&flags.scope, "scope", string(clientfile.User), "whose file: user, or project for the one in this folder")
	c.Flags().BoolVar(&flags.print, "print", false, "print what to paste and change nothing")
	c.Flags().BoolVar(&flags.remove, "remove", false, "take the gateway out again")
	_ = c.RegisterFlagCompletionFunc("scope", cobra.FixedCompletions([]string{string(clientfile.User), string(clientfile.Project)}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func install(p process, id string, flags installFlags) error {
	client, _ := clientfile.Lookup(id)
	scope := clientfile.Scope(flags.scope)
	if scope != clientfile.User && scope != clientfile.Project {
		return usageError{fmt.Errorf("--scope %q: want user or project", flags.scope)}
	}
	if !flags.remove { // only the name counts then
		if err := checkEndpoint("--url", flags.url); err != nil {
			return err
		}
	}
	server := clientfile.Server{Name: flags.name, URL: flags.url, TokenEnv: flags.tokenEnv}
	entry, err := client.Entry(server)
	if err != nil {
		return usageError{err}
	}
	places, err := places(p, scope)
	if err != nil {
		return err
	}
	path, err := client.File(scope, places)
	if err != nil {
		return usageError{fmt.Errorf("%w; leave --scope out", err)}
	}
	block := clientfile.Block(client.Format, entry)
	switch {
	case flags.print:
		fmt.Fprintf(p.err, "into %s:\n", path)
		_, err := p.out.Write(block)
		more(p.err, client, server, scope)
		return err
	case flags.remove:
		return uninstall(p, client, entry.In, server.Name, path)
	}
	r, err := editFile(path, func(old []byte) ([]byte, error) { return clientfile.Add(client.Format, old, entry) })
	if err != nil {
		fmt.Fprintf(p.err, "a2agate: %s: %v\nNothing was changed. What belongs into the file:\n", path, err)
		_, _ = p.out.Write(block)
		return exitError(1)
	}
	if !r.changed {
		fmt.Fprintf(p.out, "%s: %q is in %s already\n", client.Title, server.Name, r.path)
		return nil
	}
	fmt.Fprintf(p.out, "%s: put %q (%s) into %s\n", client.Title, server.Name, server.URL, r.path)
	kept(p.out, r)
	if server.TokenEnv != "" {
		fmt.Fprintf(p.out, "  token: %s\n", tokenAdvice(client, server.TokenEnv))
	}
	fmt.Fprintf(p.out, "  next: %s\n", client.After)
	more(p.out, client, server, scope)
	return nil
}

// tokenAdvice says where the client gets the token from.
func tokenAdvice(c clientfile.Client, env string) string {
	if c.ID == "vscode" {
		return "VS Code asks for it once and keeps it in the system's key store"
	}
	return c.Title + " reads it from " + env + ", which must be set where it is started"
}

// more prints the other ways to the same file.
func more(w io.Writer, c clientfile.Client, s clientfile.Server, scope clientfile.Scope) {
	if line := c.Command(s, scope); line != "" {
		fmt.Fprintf(w, "  or by its own command: %s\n", line)
	}
	if link := c.Link(s, scope); link != "" {
		fmt.Fprintf(w, "  or by a link: %s\n", link)
	}
}

func kept(w io.Writer, r edited) {
	if r.backup != "" {
		fmt.Fprintf(w, "  as it was: %s\n", r.backup)
	}
}

func uninstall(p process, client clientfile.Client, in, name, path string) error {
	r, err := editFile(path, func(old []byte) ([]byte, error) { return client.Remove(old, name) })
	if err != nil {
		fmt.Fprintf(p.err, "a2agate: %s: %v\nNothing was changed; take %q out of %q by hand.\n", path, err, name, in)
		return exitError(1)
	}
	if !r.changed {
		fmt.Fprintf(p.out, "%s: %q is not in %s\n", client.Title, name, r.path)
		return nil
	}
	fmt.Fprintf(p.out, "%s: took %q out of %s\n", client.Title, name, r.path)
	kept(p.out, r)
	return nil
}

// places finds the folders of clients' files by the environment.
func places(p process, scope clientfile.Scope) (clientfile.Places, error) {
	get := func(name string) string {
		v, _ := p.getenv(name)
		return v
	}
	dir, err := p.getwd()
	if err != nil && scope == clientfile.Project {
		return clientfile.Places{}, err
	}
	places := clientfile.Places{
		OS: runtime.GOOS, Home: get("HOME"), ConfigHome: get("XDG_CONFIG_HOME"), AppData: get("APPDATA"), Project: dir,
		ClaudeHome: get("CLAUDE_CONFIG_DIR"), CodexHome: get("CODEX_HOME"),
	}
	if runtime.GOOS == "windows" {
		places.Home = get("USERPROFILE")
	}
	if scope == clientfile.User && places.Home == "" {
		return places, errors.New("HOME is not set, so the client's file cannot be found; set it, or use --scope project or --print")
	}
	return places, nil
}
