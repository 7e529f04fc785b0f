package caddyplugin

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/seckill-edge/seckill/caddyplugin/token"
)

// tokenCheck verifies tokens, counts them and logs those that are refused.
type tokenCheck struct {
	verified *token.Verifier
	log      *zap.Logger

	good, expired, invalid prometheus.Counter
}

func (c *tokenCheck) provision(ctx caddy.Context, t *Tokens) (err error) {
	c.log = ctx.Logger()
	if c.verified, err = t.verifier(); err != nil {
		return err
	}
	return c.register(ctx.GetMetricsRegistry())
}

// register adds the figures to a config's registry, all verifiers of which count
// together. They begin at 0 with each config.
func (c *tokenCheck) register(registry *prometheus.Registry) error {
	counters := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "tokens_total",
		Help: "Requests with a signed token, by what was found: good, expired or invalid.",
	}, []string{"result"})
	if registry != nil { // else nobody scrapes it
		var twin prometheus.AlreadyRegisteredError
		switch err := registry.Register(counters); {
		case errors.As(err, &twin):
			counters = twin.ExistingCollector.(*prometheus.CounterVec)
		case err != nil:
			return fmt.Errorf("registering the figures of tokens: %w", err)
		}
	}
	c.good = counters.WithLabelValues("good")
	c.expired, c.invalid = counters.WithLabelValues("expired"), counters.WithLabelValues("invalid")
	return nil
}

// user verifies a request's token; unfit is why there was none to verify.
func (c *tokenCheck) user(text string, unfit error) (string, error) {
	user, err := "", unfit
	if err == nil {
		user, err = c.verified.User(text)
	}
	switch {
	case err == nil:
		c.good.Inc()
		return user, nil
	case errors.Is(err, token.ErrExpired):
		c.expired.Inc()
	default:
		c.invalid.Inc()
	}
	if line := c.log.Check(zapcore.DebugLevel, "a token was refused"); line != nil {
		line.Write(zap.Error(err))
	}
	return "", err
}
