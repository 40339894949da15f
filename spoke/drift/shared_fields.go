package drift

// Shared returns a set of the same fields. Equal sets share one result, so caches of one
// shape need the memory once. The caller must not change it.
func Shared(fields *Fields) *Fields {
	raw, err := fields.ToJSON()
	if err != nil {
		return fields
	}
	if cached, ok := parsedEntries.Get(string(raw)); ok {
		if set, ok := cached.(*Fields); ok {
			return set
		}
	}
	parsedEntries.Add(string(raw), fields)
	return fields
}
