package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Histories is the CASE of all random histories; Histories/SEED is one of them.
const Histories = "history"

// Settings are the variables that `make faults` passes on.
type Settings struct {
	// Full is FULL: every fault at every point instead of a sample.
	Full bool
	// Seed is SEED, which picks the sample and the histories.
	Seed int64
	// Part and Parts are PART: the share Part of Parts equal shares. Both are 1 without PART.
	Part, Parts int
	// Case is CASE, or nil.
	Case *Selection
	// Faults are FAULT, or empty for every fault.
	Faults []Fault
	// Report is the path of the report.
	Report string
	// Parallel is the number of runs at the same time, Sample the number of cases of a sample.
	Parallel, Sample int
	// Minutes is the time after which no case starts, 0 for no bound.
	Minutes int
	// Histories is the number of histories, -1 for the default.
	Histories int
}

// Selection is a parsed CASE: a scenario, one of its points, one case, all histories, or
// one history.
type Selection struct {
	text string
	// Scenario is a scenario, or Histories.
	Scenario string
	// History is the seed of one history, or nil.
	History *uint64
}

// String returns the CASE that was parsed.
func (s *Selection) String() string { return s.text }

// Matches reports whether the selection includes the case.
func (s *Selection) Matches(c Case) bool {
	return c.String() == s.text || strings.HasPrefix(c.String(), s.text+"/")
}

// ReadSettings parses the environment. Every bad value is an error, because a value that
// is ignored selects other cases than those that were asked for. otherwise is the seed
// without SEED.
func ReadSettings(getenv func(string) string, scenarios []string, otherwise int64) (Settings, error) {
	s := Settings{Seed: otherwise, Part: 1, Parts: 1, Report: getenv("FAULTS_REPORT")}
	if s.Report == "" {
		s.Report = "faults.json"
	}
	var err error
	if full := getenv("FAULTS_FULL"); full != "" {
		if s.Full, err = strconv.ParseBool(full); err != nil {
			return s, fmt.Errorf("FULL: %q: must be 1 or 0; unset it for a sample", full)
		}
	}
	if seed := getenv("FAULTS_SEED"); seed != "" {
		if s.Seed, err = strconv.ParseInt(seed, 10, 64); err != nil || s.Seed < 0 {
			return s, fmt.Errorf("SEED: %q: must be a whole number of 0 or more; unset it for a random one", seed)
		}
	}
	for name, to := range map[string]struct {
		value              *int
		otherwise, atLeast int
	}{
		"FAULTS_PARALLEL":  {&s.Parallel, 12, 1},
		"FAULTS_SAMPLE":    {&s.Sample, 220, 1},
		"FAULTS_MINUTES":   {&s.Minutes, 0, 0},
		"FAULTS_HISTORIES": {&s.Histories, -1, 0},
	} {
		*to.value = to.otherwise
		text := getenv(name)
		if text == "" {
			continue
		}
		if *to.value, err = strconv.Atoi(text); err != nil || *to.value < to.atLeast {
			return s, fmt.Errorf("%s: %q: must be a whole number of %d or more; unset it for the default", name, text, to.atLeast)
		}
	}
	if s.Part, s.Parts, err = parsePart(getenv("FAULTS_PART")); err != nil {
		return s, err
	}
	if s.Faults, err = parseFaults(getenv("FAULTS_ONLY")); err != nil {
		return s, err
	}
	if text := getenv("FAULTS_CASE"); text != "" {
		if s.Case, err = parseSelection(text, scenarios); err != nil {
			return s, err
		}
	}
	return s, nil
}

func parsePart(text string) (part, parts int, err error) {
	if text == "" {
		return 1, 1, nil
	}
	n, err := fmt.Sscanf(text, "%d/%d", &part, &parts)
	if n != 2 || err != nil || part < 1 || part > parts || fmt.Sprintf("%d/%d", part, parts) != text {
		return 0, 0, fmt.Errorf("PART: %q: must be NUMBER/OF with 1 <= NUMBER <= OF; use for example 2/3 for the second of three parts", text)
	}
	return part, parts, nil
}

func parseFaults(text string) ([]Fault, error) {
	if text == "" {
		return nil, nil
	}
	var faults []Fault
	for name := range strings.SplitSeq(text, ",") {
		if err := checkFault("FAULT", name, AllFaults()); err != nil {
			return nil, err
		}
		faults = append(faults, Fault(name))
	}
	return faults, nil
}

func checkFault(field, name string, all []Fault) error {
	if slices.Contains(all, Fault(name)) {
		return nil
	}
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = string(f)
	}
	return fmt.Errorf("%s: %q: unknown fault; use one of: %s", field, name, strings.Join(names, ", "))
}

// parseSelection checks all of CASE that is known before a clean run: the scenario, the
// form of the point, and the fault.
func parseSelection(text string, scenarios []string) (*Selection, error) {
	text = strings.TrimSuffix(text, "/")
	scenario, rest, _ := strings.Cut(text, "/")
	s := &Selection{text: text, Scenario: scenario}
	if scenario == Histories {
		if rest == "" {
			return s, nil
		}
		seed, err := strconv.ParseUint(rest, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("CASE: %q: the seed %q must be a whole number; use %s/SEED", text, rest, Histories)
		}
		s.History = &seed
		return s, nil
	}
	if !slices.Contains(scenarios, scenario) {
		return nil, fmt.Errorf("CASE: %q: unknown scenario %q; use %s, or one of: %s", text, scenario, Histories, strings.Join(Nearest(scenario, scenarios, len(scenarios)), ", "))
	}
	if rest == "" {
		return s, nil
	}
	point, fault, hasFault := strings.Cut(rest, "/")
	p, err := ParsePoint(point)
	if err != nil {
		return nil, fmt.Errorf("CASE: %q: %w; copy the case from %q or from a report", text, err, "replay:")
	}
	if hasFault {
		if err := checkFault("CASE", fault, FaultsAt(p)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Choose returns the cases that the settings select from all cases. FAULT filters first,
// then CASE, then PART takes its share; otherwise FULL or a sample. A selection without a
// case is an error that names the nearest cases.
func (s Settings) Choose(all []Case) ([]Case, error) {
	cases := slices.DeleteFunc(slices.Clone(all), func(c Case) bool {
		return len(s.Faults) > 0 && !slices.Contains(s.Faults, c.Fault) || s.Case != nil && !s.Case.Matches(c)
	})
	if len(cases) == 0 {
		return nil, s.noCase(all)
	}
	if s.Case != nil && s.Parts == 1 {
		return cases, nil
	}
	shuffle(cases, s.Seed)
	if s.Parts > 1 {
		var share []Case
		for i := s.Part - 1; i < len(cases); i += s.Parts {
			share = append(share, cases[i])
		}
		if len(share) == 0 {
			return nil, fmt.Errorf("PART: %d/%d: holds no case, because there are only %d; use fewer parts", s.Part, s.Parts, len(cases))
		}
		return share, nil
	}
	if s.Full || len(cases) <= s.Sample {
		return cases, nil
	}
	return spread(cases)[:s.Sample], nil
}

// shown is the number of near cases in an error.
const shown = 5

func (s Settings) noCase(all []Case) error {
	if s.Case == nil {
		return fmt.Errorf("no case exists for FAULT=%v: the clean runs recorded %d cases of other faults; unset FAULT", s.Faults, len(all))
	}
	var names []string
	for _, c := range all {
		if s.Case.Matches(c) {
			return fmt.Errorf("CASE: %q: has no case with FAULT=%v; unset FAULT or CASE", s.Case, s.Faults)
		}
		// A point without a fault is compared with points.
		name := c.String()
		if strings.Count(s.Case.text, "/") == 1 {
			name = c.Scenario + "/" + c.Point.String()
		}
		names = append(names, name)
	}
	return fmt.Errorf("CASE: %q: no clean run reaches this point, so there is no such case; the nearest of %d are:\n  %s",
		s.Case, len(all), strings.Join(Nearest(s.Case.text, names, shown), "\n  "))
}

// Nearest returns up to n different candidates, those with the smallest edit distance
// first.
func Nearest(text string, candidates []string, n int) []string {
	sorted := slices.Clone(candidates)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	distances := map[string]int{}
	for _, c := range sorted {
		distances[c] = distance(text, c)
	}
	slices.SortStableFunc(sorted, func(a, b string) int { return distances[a] - distances[b] })
	return sorted[:min(n, len(sorted))]
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
