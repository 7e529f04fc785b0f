package lua

import (
	"errors"
	"net"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Fault is the kind of a failed call to Redis. It is told by Redis's error code or
// by how the connection failed, never by words in the text: Redis 7 adds the word
// "script" to every error that is raised inside one.
type Fault int

// The kinds of faults, the milder first. A new error code also needs a line in the
// tests of this table.
const (
	// FaultNone: the call was answered.
	FaultNone Fault = iota
	// FaultNotSent: the call has not left this process. It changed nothing.
	FaultNotSent
	// FaultUnanswered: no answer came. Whether the call has run is unknown.
	FaultUnanswered
	// FaultRefused: Redis refuses for now (it loads, fails over, is full, cannot persist,
	// misses replicas, is busy). It changed nothing; the same call may succeed later.
	FaultRefused
	// FaultForbidden: this user lacks a right, the server does not offer a command, or the
	// password is wrong. It changed nothing; it succeeds once an operator has helped.
	FaultForbidden
	// FaultPermanent: the answer to this call will be the same next time: a key of the
	// product has another type or is damaged, or this program made a wrong call.
	FaultPermanent
)

// faultsByCode is the only table of Redis's error codes.
var faultsByCode = map[string]Fault{
	// A replica, or a primary with too few replicas or without its primary.
	"READONLY": FaultRefused, "NOREPLICAS": FaultRefused, "MASTERDOWN": FaultRefused,
	// Memory and disk.
	"OOM": FaultRefused, "MISCONF": FaultRefused,
	// It starts, runs a script of somebody's for too long, or is being replaced.
	"LOADING": FaultRefused, "BUSY": FaultRefused, "UNBLOCKED": FaultRefused, "NOTBUSY": FaultRefused,
	// A cluster whose slots are moving or uncovered.
	"TRYAGAIN": FaultRefused, "CLUSTERDOWN": FaultRefused, "MOVED": FaultRefused, "ASK": FaultRefused,
	// The script cache was emptied; the next call sends the script again.
	"NOSCRIPT": FaultRefused,
	// Rights.
	"NOPERM": FaultForbidden, "NOAUTH": FaultForbidden, "WRONGPASS": FaultForbidden,
	// Keys of the product, or the call itself.
	"WRONGTYPE": FaultPermanent, "CROSSSLOT": FaultPermanent, "EXECABORT": FaultPermanent, "NOPROTO": FaultPermanent,
}

// FaultOf tells what kind of fault err is; an error of Redis with an unknown code is
// FaultPermanent if it comes from a script or an argument (code ERR), else FaultRefused: a
// code that a newer server invents is more likely a state of the server than a
// fault of the call.
func FaultOf(err error) Fault {
	var reply redis.Error
	var dial *net.OpError
	switch {
	case err == nil:
		return FaultNone
	case errors.Is(err, ErrDamaged) || errors.Is(err, ErrReply):
		return FaultPermanent
	case errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed):
		return FaultNotSent
	case errors.As(err, &dial) && dial.Op == "dial":
		return FaultNotSent
	case !errors.As(err, &reply):
		return FaultUnanswered
	}
	code := codeOf(reply.Error())
	if fault, known := faultsByCode[code]; known {
		return fault
	}
	if code == "ERR" || strings.ToUpper(code) != code { // no code at all: an embedded server's
		return faultByPrefix(reply.Error())
	}
	return FaultRefused
}

// faultsByPrefix are the replies to which Redis gives no code of their own. They
// are told by how they begin, as the server's source has it.
var faultsByPrefix = []struct {
	prefix string
	fault  Fault
}{
	{"ERR max number of clients reached", FaultRefused},
	// NOPERM inside a script: of 7.0 and 7.2.
	{"ERR The user executing the script can't ", FaultForbidden},
	{"ERR ACL failure in script: ", FaultForbidden},
	{"ERR unknown command", FaultForbidden}, // renamed, or not offered by a managed server
	{"ERR Unknown Redis command called from script", FaultForbidden},
	{"ERR This Redis command is not allowed from script", FaultForbidden},
}

func faultByPrefix(text string) Fault {
	if forbidden62.MatchString(text) {
		return FaultForbidden
	}
	for _, known := range faultsByPrefix {
		if strings.HasPrefix(text, known.prefix) {
			return known.fault
		}
	}
	return FaultPermanent
}

// Transient says that the same call may succeed later without a change to the
// product's keys: whoever has promised something tries again.
func (f Fault) Transient() bool { return f != FaultNone && f != FaultPermanent }

// MayHaveRun says whether Redis may have run a call that ended with err. A reply that
// cannot be read comes from a call that has run.
func MayHaveRun(err error) bool {
	fault := FaultOf(err)
	return fault == FaultNone || fault == FaultUnanswered || errors.Is(err, ErrReply)
}

// String names the fault the way metrics and logs do.
func (f Fault) String() string {
	switch f {
	case FaultNone:
		return "none"
	case FaultNotSent:
		return "not_sent"
	case FaultUnanswered:
		return "unanswered"
	case FaultRefused:
		return "refused"
	case FaultForbidden:
		return "forbidden"
	case FaultPermanent:
		return "permanent"
	}
	return "unknown"
}

// wrapped is how Redis before 7.0 reports an error of a command inside a script:
// the command's own code stands behind the script's position.
var wrapped = regexp.MustCompile(`^ERR Error running script \(call to f_[0-9a-f]{40}\): @user_script: ?\d+: (?:@user_script: ?\d+: )?-?([A-Z]+) `)

// forbidden62 is 6.2's NOPERM inside a script, which has no code.
var forbidden62 = regexp.MustCompile(`^ERR Error running script \(call to f_[0-9a-f]{40}\): @user_script: ?\d+: (?:@user_script: ?\d+: )?The user executing the script can't `)

// codeOf is the error code at the front of an error reply.
func codeOf(text string) string {
	if m := wrapped.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	return code
}
