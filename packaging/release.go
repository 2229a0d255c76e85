//go:build ignore

// This program reads .goreleaser.yaml as goreleaser does, strictly, and makes
// the deb and the rpm that it describes, with goreleaser's own parts but
// without goreleaser, whose build takes minutes. packaging/check.sh runs it:
//
//	go run -modfile=packaging/tools.mod packaging/release.go PROGRAM ARCH DIR
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: release.go PROGRAM ARCH DIR")
	}
	project, err := config.Load(".goreleaser.yaml")
	if err != nil {
		return err
	}
	if len(project.Builds) == 0 || len(project.Archives) == 0 || len(project.NFPMs) == 0 || len(project.Brews) == 0 {
		return errors.New(".goreleaser.yaml: builds, archives, nfpms and brews are all wanted")
	}
	for _, pkg := range project.NFPMs {
		for _, format := range pkg.Formats {
			if err := build(pkg, format, args[0], args[1], args[2]); err != nil {
				return fmt.Errorf("%s: %w", format, err)
			}
		}
	}
	return nil
}

// build makes one package.
func build(pkg config.NFPM, format, program, arch, dir string) error {
	contents := files.Contents{{Source: program, Destination: "/usr/bin/a2agate", FileInfo: &files.ContentFileInfo{Mode: 0o755}}}
	for _, c := range pkg.Contents {
		contents = append(contents, &files.Content{
			Source: c.Source, Destination: c.Destination, Type: c.Type, Packager: c.Packager,
			FileInfo: &files.ContentFileInfo{Owner: c.FileInfo.Owner, Group: c.FileInfo.Group, Mode: c.FileInfo.Mode},
		})
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: pkg.PackageName, Arch: arch, Platform: "linux", Version: "0.0.1", Section: pkg.Section, Maintainer: pkg.Maintainer,
		Description: pkg.Description, Vendor: pkg.Vendor, Homepage: pkg.Homepage, License: pkg.License,
		Overridables: nfpm.Overridables{
			Depends: pkg.Dependencies, Contents: contents,
			Scripts: nfpm.Scripts{PostInstall: pkg.Scripts.PostInstall, PreRemove: pkg.Scripts.PreRemove},
		},
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, packager.ConventionalFileName(info)))
	if err != nil {
		return err
	}
	return errors.Join(packager.Package(info, f), f.Close())
}
