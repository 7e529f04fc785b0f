package duty

// Name is one of the duties of this file. Another one cannot be made elsewhere, so
// that its panics are counted from 0.
type Name struct{ text string }

// String is how logs and metrics call it.
func (n Name) String() string { return n.text }

// The duties of a backend.
var (
	Activities = name("activities")
	Consume    = name("consume")
	Expiry     = name("expiry")
	Fence      = name("fence")
	Guard      = name("guard")
	Health     = name("health")
	Keeper     = name("keeper")
	Lease      = name("lease")
	Migrate    = name("migrate")
	Presence   = name("presence")
	Promise    = name("promise")
	Reconcile  = name("reconcile")
	Relay      = name("relay")
	Settle     = name("settle")
	Tide       = name("tide")
)

var names []string

func name(text string) Name {
	names = append(names, text)
	return Name{text}
}

// Names are all duties, as metrics call them.
func Names() []string { return append([]string(nil), names...) }
