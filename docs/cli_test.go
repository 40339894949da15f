package docs_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/reconcile-lab/reconcile-lab/internal/cli"
)

// help returns the output of `reconcile-lab ARGS --help`.
func help(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := cli.Main(append(append([]string{"reconcile-lab"}, args...), "--help"), strings.NewReader(""), &out, &errOut); code != 0 {
		t.Fatalf("help for %v: exit %d: %s", args, code, errOut.String())
	}
	return out.String()
}

// part of a help text: the indented lines below each title that matches.
func part(text string, title *regexp.Regexp) []string {
	var lines []string
	in := false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case line != "" && !strings.HasPrefix(line, " "):
			in = title.MatchString(line)
		case in && line != "":
			lines = append(lines, line)
		}
	}
	return lines
}

// sections of a document: heading → text below it.
func sections(text string) map[string]string {
	found := map[string]string{}
	for _, s := range strings.Split(text, "\n## ")[1:] {
		heading, body, _ := strings.Cut(s, "\n")
		found[heading] = body
	}
	return found
}

// subcommands returns the names of the commands that a help text lists.
func subcommands(text string) []string {
	var names []string
	for _, line := range part(text, commandTitles) {
		if name := strings.Fields(line)[0]; name != "help" && name != "completion" {
			names = append(names, name)
		}
	}
	return names
}

var (
	commandTitles = regexp.MustCompile(`^(Caches|Members|Lab|Available Commands|Additional Commands):$`)
	ownFlags      = regexp.MustCompile(`^Flags:$`)
	exitCodes     = regexp.MustCompile(`^Exit codes:$`)
	flagRow       = regexp.MustCompile("(?m)^\\| (?:`-\\w`, )?`(--[a-z][a-z-]*)")
	flagName      = regexp.MustCompile(`^\s+(?:-\w, )?(--[a-z][a-z-]*)`)
)

func TestCLIPage_ListsEveryCommandFlagAndExitCode(t *testing.T) {
	documented := sections(read(t, "cli.md"))
	root := help(t)

	flags := func(section string, lines []string) {
		t.Helper()
		exist := map[string]bool{}
		for _, line := range lines {
			m := flagName.FindStringSubmatch(line)
			if m == nil || m[1] == "--help" {
				continue
			}
			exist[m[1]] = true
			if !strings.Contains(section, "`"+m[1]) {
				t.Errorf("cli.md does not list %s, which help describes as %q", m[1], strings.TrimSpace(line))
			}
		}
		for _, m := range flagRow.FindAllStringSubmatch(section, -1) {
			if !exist[m[1]] {
				t.Errorf("cli.md lists %s, which the command does not have", m[1])
			}
		}
	}

	global, ok := documented["Flags of every command"]
	if !ok {
		t.Fatal("cli.md has no section of the flags of every command")
	}
	flags(global, part(root, ownFlags))

	commands := subcommands(root)
	if len(commands) == 0 {
		t.Fatal("help lists no commands")
	}
	known := map[string]bool{"Flags of every command": true, "Exit codes": true, "Which hub": true}
	for len(commands) > 0 {
		name := commands[0]
		commands = commands[1:]
		text := help(t, strings.Fields(name)...)
		for _, sub := range subcommands(text) {
			commands = append(commands, name+" "+sub)
		}
		section, ok := documented[name]
		if !ok {
			t.Errorf("cli.md has no section %q", name)
			continue
		}
		known[name] = true
		flags(section, part(text, ownFlags))
	}
	for heading := range documented {
		if !known[heading] {
			t.Errorf("cli.md has a section %q, but there is no such command", heading)
		}
	}

	for _, line := range part(root, exitCodes) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), " ")
		row := "| " + code + " | " + strings.TrimSpace(meaning) + " |"
		if !strings.Contains(documented["Exit codes"], row) {
			t.Errorf("cli.md has no row %q", row)
		}
	}
}

// TestCLIPage_ShowsTheOutputOfExplain runs the examples that need no hub.
func TestCLIPage_ShowsTheOutputOfExplain(t *testing.T) {
	examples := regexp.MustCompile("(?s)```console\n\\$ reconcile-lab (explain [^\n]*)\n(.*?)```").FindAllStringSubmatch(read(t, "cli.md"), -1)
	if len(examples) == 0 {
		t.Fatal("cli.md has no example of explain")
	}
	for _, example := range examples {
		var out, errOut bytes.Buffer
		args := append([]string{"reconcile-lab"}, strings.Fields(example[1])...)
		if code := cli.Main(args, strings.NewReader(""), &out, &errOut); code != 0 {
			t.Errorf("%s: exit %d: %s", example[1], code, errOut.String())
		}
		if out.String() != example[2] {
			t.Errorf("cli.md shows for %s:\n%s\nwant:\n%s", example[1], example[2], out.String())
		}
	}
}
