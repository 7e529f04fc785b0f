package queue

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/seckill-edge/seckill/internal/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servicetest.Main(m)) }
